"""export croissant: metadata from the manifest. export mds: the refusal; scripts/check_exports.py runs the readers."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_sets import ENGINE
from test_export import recipe_set, records_of, sound

import imagenet_prep
from imagenet_prep.errors import UsageError
from imagenet_prep.stages.export import export
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout

__all__ = ["sound"]  # the fixture


def metadata(layout: Layout) -> dict[str, Any]:
    """The content of croissant.json."""
    out = export(layout, "croissant", None, ENGINE).out
    found: dict[str, Any] = json.loads((out / "croissant.json").read_text())
    return found


def test_croissant_has_every_feature_of_every_split(sound: Layout) -> None:
    """Names and kinds as in the manifest, the image as an image; numbers of records; where the shards are."""
    found, manifest = metadata(sound), load_manifest(sound.manifest_path)
    assert manifest
    assert found["name"] == "ILSVRC2012"
    assert [each["includes"] for each in found["distribution"]] == ["train-*-of-*", "validation-*-of-*"]
    assert [each["name"] for each in found["recordSet"]] == ["train", "validation"]
    for each in found["recordSet"]:
        count = len(records_of(sound, each["name"]))
        assert each["description"] == f"{count:,} records"
        assert f"{count:,} in {each['name']}" in found["description"]
        kinds = {field["name"]: (field["dataType"], field.get("repeated", False)) for field in each["field"]}
        assert kinds.keys() == manifest.dataset.features.keys()
        assert kinds["image/encoded"] == ("sc:ImageObject", False)
        assert kinds["image/class/label"] == ("sc:Integer", False)
        assert kinds["image/object/bbox/xmin"] == ("sc:Float", True)
        assert {field["source"]["fileSet"]["@id"] for field in each["field"]} == {f"{each['name']}-shards"}


def test_croissant_of_a_recipe_claims_no_license(tmp_path: Path) -> None:
    """Only ImageNet's terms are known."""
    found = metadata(recipe_set(tmp_path, "record: {pic: encoded, y: label}\n"))
    assert not {"license", "url", "citeAs"} & found.keys()
    assert "sc:ImageObject" in {field["dataType"] for field in found["recordSet"][0]["field"]}


def test_croissant_needs_a_manifest(sound: Layout, tmp_path: Path) -> None:
    """Shards of another maker do not tell their features."""
    for shard in existing(Path(str(sound.output_dir)), "*-of-*"):
        (tmp_path / shard.name).write_bytes(shard.read_bytes())
    with pytest.raises(UsageError, match="has no manifest"):
        export(Layout(tmp_path), "croissant", None, ENGINE)


def test_mds_names_what_to_install(sound: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is written."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="mosaicml-streaming") as caught:
        imagenet_prep.export(sound, "mds", tmp_path / "out", ENGINE)
    assert "imagenet-prep[mds]" in str(caught.value)
    assert not (tmp_path / "out").exists()
