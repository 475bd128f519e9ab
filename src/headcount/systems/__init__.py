"""Named systems: what took part in a shared task, ready to fit."""
