"""Plumbing without opinions: frames, files, checks, progress, types, dates, text tables."""
