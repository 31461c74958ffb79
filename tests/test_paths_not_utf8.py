"""Folders whose names are not UTF-8: exported to, read from, or refused with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing
from made_folders import parquet, picture
from made_sets import ENGINE
from made_tars import save
from test_class_numbers import make
from test_export import streaming  # noqa: F401 - a fixture

from imagenet_prep import Layout, export
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.loading import load

ODD = os.fsdecode(b"\xffo")


@pytest.fixture
def flowers(tmp_path: Path) -> Layout:
    """A small set."""
    for name in ("cat/1.jpg", "dog/2.jpg"):
        save(tmp_path / "flowers" / name, picture(name))
    return make(tmp_path, "source: {folders: flowers}\n")


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Path]:
    """A path that is not UTF-8."""
    yield tmp_path / ODD
    if (tmp_path / ODD).exists():
        (tmp_path / ODD).rename(tmp_path / "odd")


def _files_below(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in existing(folder, "**/*") if path.is_file()}


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("form", ["parquet", "mds", "webdataset", "folders"])
def test_a_set_is_exported_to_it(flowers: Layout, odd: Path, form: str) -> None:
    """The files are those of any other folder."""
    shards = export(flowers, form, odd, ENGINE)
    usual = export(flowers, form, odd.with_name("usual"), ENGINE)
    names = _files_below(usual.out)
    assert _files_below(shards.out) == names
    data = [name for name in names if name.suffix in (".parquet", ".mds", ".tar", ".jpg")]
    assert data
    assert all((odd / name).read_bytes() == (usual.out / name).read_bytes() for name in data)


def test_an_export_whose_library_opens_no_such_path_is_refused(flowers: Layout, odd: Path) -> None:
    """Before anything is made."""
    with pytest.raises(UsageError, match="this path is not UTF-8"):
        export(flowers, "arrayrecord", odd, ENGINE)
    assert not odd.exists()


def test_parquet_in_it_is_not_called_damaged(odd: Path) -> None:
    """The path is at fault, not the file."""
    save(odd / "p.parquet", parquet("1.jpg", "2.jpg"))
    save(odd / "r.yaml", b"source: {parquet: p.parquet}\n")
    with pytest.raises(InputError) as caught:
        load(odd / "r.yaml", None, ENGINE)
    assert caught.value.what.endswith("p.parquet can't be read: its path is not UTF-8")
    assert "intact" not in str(caught.value)
