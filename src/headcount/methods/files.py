"""Model files: data, not code. Loading one from a stranger runs nothing of theirs.

A ``.hc`` file is a zip of ``manifest.json`` (what it is, in words), ``model.skops`` (the fitted
quantifier as plain data) and, where other estimators belong to it, a ``.skops`` file for each of
these. Only types of Headcount, scikit-learn, numpy and scipy that are known to be harmless are put
together again; a file that asks for any other is refused before anything is made.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from sklearn.utils.validation import check_is_fitted

from headcount import __version__
from headcount._core.files import write_whole
from headcount.exceptions import HeadcountError, InputError
from headcount.methods.base import Quantifier, check_quantifier_type

FORMAT = 3  # version of the container: 3 added named parts
MODEL = "model"  # name of the part that is the quantifier
# Rooms whose classes hold data and do nothing when they are put together again.
ROOMS = ["methods", "scores", "text", "selection", "protocols"]
OTHERS = {
    "headcount.bags.Bags",
    "headcount.tables.covariate_bins.CovariateBins",
    "headcount._core.frame.Frame",
    "headcount.measures.Measure",
    "numpy.dtype",  # which scikit-learn's encoders keep
    # By name, because their modules need torch.
    "headcount.neural.iwdan.DANN",
    "headcount.neural.iwdan.IWDAN",
    "headcount.neural.networks.DeepSets",
    "headcount.neural.networks.GMNet",
    "headcount.neural.networks.HistNetQ",
    "headcount.neural.networks.SetTransformer",
    "headcount.neural.quanet.QuaNet",
    "headcount.neural.sampling.Sampling",
    "headcount.neural.training.Training",
}


@dataclass(frozen=True)
class ModelFile:
    """Content of a ``.hc`` file.

    Attributes
    ----------
    quantifier : fitted quantifier
    about : what was written about it, as plain data
    parts : other fitted estimators that belong to it, by name
    manifest : all that the file says about itself
    """

    quantifier: Quantifier
    about: Any
    parts: dict[str, Any] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)


def save(
    quantifier: Quantifier,
    path: str | Path,
    about: dict[str, Any] | None = None,
    parts: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted quantifier to a ``.hc`` file, whole or not at all.

    Parameters
    ----------
    quantifier : fitted quantifier
    path : file
    about : mapping, optional
        Whatever should be said about it, as plain data: columns, how it was trained.
    parts : mapping of names to fitted estimators, optional
        What belongs to it and is no quantifier.
    """
    check_quantifier_type(quantifier)
    check_is_fitted(quantifier, "classes_")
    data = {name: _dumped(part) for name, part in {MODEL: quantifier, **(parts or {})}.items()}
    digests = {name: hashlib.sha256(part).hexdigest() for name, part in data.items()}
    manifest = {
        "format": FORMAT,
        "headcount": __version__,
        "python": platform.python_version(),
        "method": repr(quantifier),
        "classes": [str(c) for c in quantifier.classes_.tolist()],
        "sha256": digests.pop(MODEL),
        "parts": digests,
        "about": about or {},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False))
        for name, part in data.items():
            archive.writestr(f"{name}.skops", part)
    write_whole(Path(path), lambda beside: beside.write_bytes(packed.getvalue()))


def load_file(path: str | Path) -> ModelFile:
    """All that a ``.hc`` file holds, read once.

    Raises
    ------
    InputError
        As `load`.
    """
    path = Path(path)
    manifest, data = _read(path)
    loaded = {name: _loaded(path, manifest, part) for name, part in data.items()}
    quantifier = loaded.pop(MODEL)
    check_quantifier_type(quantifier)
    return ModelFile(quantifier, manifest.get("about"), loaded, manifest)


def load(path: str | Path) -> Quantifier:
    """Fitted quantifier of a ``.hc`` file; nothing in the file is run.

    Raises
    ------
    InputError
        If it is no model file, cut short, changed after it was written, made by a newer
        Headcount, or asks for a type that is not known to be harmless.
    """
    return load_file(path).quantifier


def _dumped(estimator: Any) -> bytes:
    io_module = _skops()
    try:
        data: bytes = io_module.dumps(estimator)
    except Exception as error:  # skops raises many kinds for what it cannot write
        raise InputError(f"this quantifier cannot be written as plain data: {error}") from None
    unknown = sorted(set(io_module.get_untrusted_types(data=data)) - known_types())
    if unknown:
        raise InputError(
            f"this quantifier holds {', '.join(unknown)}, which a model file may not contain: use "
            "classifiers and transformers of scikit-learn."
        )
    return data


def _loaded(path: Path, manifest: dict[str, Any], data: bytes) -> Any:
    io_module = _skops()
    try:
        wanted = set(io_module.get_untrusted_types(data=data))
    except Exception as error:  # a damaged inner file
        raise InputError(f"{path.name} is damaged: {error!r}.") from None
    unknown = sorted(wanted - known_types())
    if unknown:
        raise InputError(
            f"{path.name} asks for {', '.join(unknown)}, which Headcount does not know to be "
            "harmless. Nothing of it was run."
        )
    try:
        return io_module.loads(data, trusted=sorted(wanted))
    except Exception as error:  # a type that has changed between versions
        raise InputError(
            f"{path.name}, made by headcount {manifest['headcount']}, cannot be read by "
            f"{__version__}: {error!r}. Fit it again."
        ) from None


@cache
def known_types() -> frozenset[str]:
    """Types of ours that a model file may hold: estimators and what they are made of."""
    found = set(OTHERS)
    for room in ROOMS:
        package = import_module(f"headcount.{room}")
        for info in walk_packages(package.__path__, f"headcount.{room}."):
            module = import_module(info.name)
            mine = [v for v in vars(module).values() if isinstance(v, type)]
            found |= {f"{v.__module__}.{v.__qualname__}" for v in mine if v.__module__ == info.name}
    return frozenset(found)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            digests = {MODEL: str(manifest["sha256"]), **dict(manifest.get("parts") or {})}
            data = {name: archive.read(f"{name}.skops") for name in digests}
        version = int(manifest["format"])
        str(manifest["headcount"])
    except (
        zipfile.BadZipFile,
        AttributeError,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
        OSError,
        OverflowError,
        RecursionError,
    ):
        raise InputError(f"{path.name} is not a model file of Headcount, or cut short.") from None
    if version > FORMAT:
        raise InputError(
            f"{path.name} was written by headcount {manifest['headcount']}, which is newer than "
            f"this one ({__version__}): update headcount."
        )
    if any(hashlib.sha256(part).hexdigest() != digests[name] for name, part in data.items()):
        raise InputError(f"{path.name} was changed after it was written: its checksum is wrong.")
    return manifest, data


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise HeadcountError("model files need skops: pip install skops.") from None
    return skops.io
