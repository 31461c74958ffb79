"""Stages one after the other: which archives must be fetched,
whatever form their content is there in.
"""

from __future__ import annotations

from pathlib import Path

from imagenet_prep import (
    ConvertOptions,
    Layout,
    annotate,
    convert,
    make_engine,
    report,
    run,
    verify,
)
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.pipeline import missing_archives

PART = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)


def test_only_what_is_missing_is_fetched(tiny_data_dir: Path, tmp_path: Path) -> None:
    """An archive that is not there is missing; the boxes of validation
    images only where they are asked for.
    """
    assert missing_archives(Layout(tmp_path / "new")) == ("train", "validation", "boxes")
    assert missing_archives(Layout(tmp_path / "new"), validation_boxes=True)[3:] == (
        "validation-boxes",
    )
    layout = Layout(tiny_data_dir)
    assert missing_archives(layout, validation_boxes=True) == ()
    layout.archive_path(ARCHIVES["validation-boxes"]).unlink()
    assert missing_archives(layout) == ()
    assert missing_archives(layout, validation_boxes=True) == ("validation-boxes",)


def test_boxes_that_are_given_are_not_fetched(tiny_data_dir: Path, tmp_path: Path) -> None:
    """After annotate --boxes no archive of annotations is missed:
    no server is asked, and records have their boxes.
    """
    layout = Layout(tiny_data_dir)
    given = layout.archive_path(ARCHIVES["boxes"]).rename(tmp_path / "annotations.tar.gz")
    assert missing_archives(layout) == ("boxes",)
    annotate(layout, make_engine("threads", 2), boxes=given)
    summary = run(layout, make_engine("threads", 2), options=PART)
    assert (summary.download, summary.annotate) == (None, None)
    assert summary.convert.splits[0].images
    assert layout.boxes_csv.stat().st_size
    assert summary.verify.problems == ()


def test_a_verdict_with_a_manifest_is_none_without_it(tiny_data_dir: Path) -> None:
    """Once the manifest is gone, or come, what was found before says nothing:
    report verifies again.
    """
    layout, engine = Layout(tiny_data_dir), make_engine("threads", 2)
    convert(layout, engine, PART)
    verify(layout, engine)
    manifest = layout.manifest_path.read_bytes()
    for change in (layout.manifest_path.unlink, lambda: layout.manifest_path.write_bytes(manifest)):
        before = layout.verdict_path.stat().st_mtime_ns
        report(layout, engine, samples=1)
        assert layout.verdict_path.stat().st_mtime_ns == before
        change()
        report(layout, engine, samples=1)
        assert layout.verdict_path.stat().st_mtime_ns != before
