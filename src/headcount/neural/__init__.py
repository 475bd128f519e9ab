"""Networks that see a whole bag; they need torch, which the extra of that name installs."""

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError(
        "headcount.neural needs torch and safetensors: pip install 'headcount[torch]' "
        "(install torch first to choose its build)."
    ) from None

from headcount._core.lazy import attach

__getattr__, __dir__, __all__ = attach("headcount.neural")
