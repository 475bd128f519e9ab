"""The few loops where numba wins big over numpy: compiled on first use, cached on disk."""
