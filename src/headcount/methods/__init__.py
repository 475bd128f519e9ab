"""Quantifiers: scores and bags in, prevalence estimates out, all bags at once."""

from headcount._core.lazy import attach

__getattr__, __dir__, __all__ = attach("headcount.methods")
