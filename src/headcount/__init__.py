"""Headcount: not which, but how many. Class shares of unlabelled data when the world has moved.

Names are loaded when first used, so that `import headcount` costs next to nothing: scikit-learn
alone takes a second, and imports pandas where it finds it. They are listed in ``__init__.pyi``.
"""

from headcount._core.lazy import attach

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach("headcount")
