"""ImageNet (ILSVRC2012) as TFRecord shards.

These are the public names. Each is imported on first use, so that the command line starts fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imagenet_prep import records as records
    from imagenet_prep.engines import make_engine as make_engine
    from imagenet_prep.errors import PrepError as PrepError
    from imagenet_prep.fetch.credentials import Credentials as Credentials
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions as ConvertOptions
    from imagenet_prep.pipeline import report as report
    from imagenet_prep.pipeline import run as run
    from imagenet_prep.raw import open as open
    from imagenet_prep.stages.annotate import annotate as annotate
    from imagenet_prep.stages.convert import convert as convert
    from imagenet_prep.stages.diff import diff as diff
    from imagenet_prep.stages.download import DownloadOptions as DownloadOptions
    from imagenet_prep.stages.download import download as download
    from imagenet_prep.stages.export import export as export
    from imagenet_prep.stages.repair import repair as repair
    from imagenet_prep.stages.show import show as show
    from imagenet_prep.stages.status import status as status
    from imagenet_prep.stages.untar import untar as untar
    from imagenet_prep.stages.verify import verify as verify
    from imagenet_prep.stages.verify_raw import verify_raw as verify_raw
    from imagenet_prep.storage.layout import Layout as Layout

__version__ = "0.1.0"

_STAGES = (
    "annotate",
    "convert",
    "diff",
    "download",
    "export",
    "repair",
    "show",
    "status",
    "untar",
    "verify",
    "verify_raw",
)
_HOMES = {name: f"stages.{name}" for name in _STAGES} | {
    "ConvertOptions": "ilsvrc2012.settings",
    "Credentials": "fetch.access",
    "DownloadOptions": "stages.download",
    "Layout": "storage.layout",
    "PrepError": "errors",
    "make_engine": "engines",
    "open": "raw",
    "report": "pipeline",
    "run": "pipeline",
}

__all__ = sorted([*_HOMES, "records"])


def __getattr__(name: str) -> Any:
    if name == "records":
        return importlib.import_module("imagenet_prep.records")
    if name in _HOMES:
        return getattr(importlib.import_module(f"imagenet_prep.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'imagenet_prep' has no attribute {name!r}")
