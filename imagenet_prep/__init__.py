"""ImageNet (ILSVRC2012) as TFRecord shards.

The public names. Each is loaded when it is first asked for, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imagenet_prep import records
    from imagenet_prep.engines import make_engine
    from imagenet_prep.errors import PrepError
    from imagenet_prep.fetch.access import Credentials
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.pipeline import report, run
    from imagenet_prep.raw import open
    from imagenet_prep.stages.annotate import annotate
    from imagenet_prep.stages.convert import convert
    from imagenet_prep.stages.diff import diff
    from imagenet_prep.stages.download import DownloadOptions, download
    from imagenet_prep.stages.export import export
    from imagenet_prep.stages.repair import repair
    from imagenet_prep.stages.show import show
    from imagenet_prep.stages.status import status
    from imagenet_prep.stages.untar import untar
    from imagenet_prep.stages.verify import verify
    from imagenet_prep.storage.layout import Layout

__version__ = "0.1.0"

_HOMES = {
    "ConvertOptions": "ilsvrc2012.settings",
    "Credentials": "fetch.access",
    "DownloadOptions": "stages.download",
    "Layout": "storage.layout",
    "PrepError": "errors",
    "annotate": "stages.annotate",
    "convert": "stages.convert",
    "diff": "stages.diff",
    "download": "stages.download",
    "export": "stages.export",
    "make_engine": "engines",
    "open": "raw",
    "repair": "stages.repair",
    "report": "pipeline",
    "run": "pipeline",
    "show": "stages.show",
    "status": "stages.status",
    "untar": "stages.untar",
    "verify": "stages.verify",
}

__all__ = [
    "ConvertOptions",
    "Credentials",
    "DownloadOptions",
    "Layout",
    "PrepError",
    "annotate",
    "convert",
    "diff",
    "download",
    "export",
    "make_engine",
    "open",
    "records",
    "repair",
    "report",
    "run",
    "show",
    "status",
    "untar",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "records":
        return importlib.import_module("imagenet_prep.records")
    if name in _HOMES:
        return getattr(importlib.import_module(f"imagenet_prep.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'imagenet_prep' has no attribute {name!r}")
