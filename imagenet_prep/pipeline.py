"""The whole way: every stage that is needed, in order. What ``imagenet-prep run`` and ``make imagenet`` call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep import ilsvrc2012
from imagenet_prep.checks.verdict import Depth, Verdict
from imagenet_prep.fetch.access import Credentials
from imagenet_prep.layout import Layout
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.planning import ConvertOptions
from imagenet_prep.sources.imagenet import find_source
from imagenet_prep.stages.annotate import AnnotateSummary, annotate, find_annotations
from imagenet_prep.stages.convert import ConvertSummary, convert
from imagenet_prep.stages.download import DownloadSummary, download
from imagenet_prep.stages.untar import UntarSummary, untar
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage import hold


@dataclass(frozen=True, slots=True)
class DownloadOptions:
    """How to download; see ``stages.download.download``."""

    base_url: str = ilsvrc2012.BASE_URL
    cookies: Path | None = None
    connections: int = 1
    check_digest: bool = True
    digests: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What each stage did; None for a stage that was not needed."""

    download: DownloadSummary | None
    untar: UntarSummary | None
    annotate: AnnotateSummary | None
    convert: ConvertSummary
    verify: Verdict


def missing_archives(layout: Layout, *, validation_boxes: bool = False) -> tuple[str, ...]:
    """The archives that must be fetched: those whose content is not in the raw folder in any form."""
    missing = [split for split in ilsvrc2012.SPLITS if find_source(layout, split) is None]
    if find_annotations(layout) is None:
        missing.append("boxes")
    if validation_boxes and find_annotations(layout, validation=True) is None:
        missing.append("validation-boxes")
    return tuple(missing)


def run(
    layout: Layout,
    engine: Engine,
    *,
    credentials: Credentials | None = None,
    fetching: DownloadOptions = DownloadOptions(),
    extract: bool = False,
    boxes: Path | None = None,
    options: ConvertOptions = ConvertOptions(),
    depth: Depth = "full",
    progress: Progress | None = None,
) -> RunSummary:
    """Download what is missing, untar if asked to, annotate, convert, verify; each stage resumes.

    Raises:
        PrepError: what the stage that failed raised; the stages before it stay done.
    """
    progress = progress or Silent()
    with hold(layout):
        fetched = _fetch(layout, credentials, fetching, boxes, options, progress)
        extracted = untar(layout, engine, progress=progress) if extract else None
        annotated = annotate(layout, engine, boxes=boxes, validation=options.validation_boxes, progress=progress)
        converted = convert(layout, engine, options, progress=progress)
    verdict = verify(layout, engine, depth=depth, progress=progress)
    return RunSummary(fetched, extracted, annotated, converted, verdict)


def _fetch(
    layout: Layout,
    credentials: Credentials | None,
    fetching: DownloadOptions,
    boxes: Path | None,
    options: ConvertOptions,
    progress: Progress,
) -> DownloadSummary | None:
    missing = missing_archives(layout, validation_boxes=options.validation_boxes)
    if boxes is not None:
        missing = tuple(key for key in missing if key != "boxes")
    if not missing:
        return None
    return download(
        layout,
        only=missing,
        base_url=fetching.base_url,
        credentials=credentials,
        cookies=fetching.cookies,
        connections=fetching.connections,
        check_digest=fetching.check_digest,
        digests=fetching.digests,
        progress=progress,
    )
