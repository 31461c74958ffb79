"""A Location: joined, named and sent as a Path is;
a new kind of store is one class, and holds whole data sets.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from existing import existing
from memory_store import MemoryStore

import imagenet_prep
from imagenet_prep import ConvertOptions, Layout
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import AccessError, UsageError
from imagenet_prep.stages.report import write_report
from imagenet_prep.storage.files import append_to, claim, parts_of, plain_lines
from imagenet_prep.storage.location import Location, local_path, locate
from imagenet_prep.storage.object_store import ObjectStore
from imagenet_prep.storage.store import RangedView

BUCKET = ObjectStore(scheme="s3", bucket="bucket")


@pytest.mark.parametrize(
    "written",
    [
        "S3://bucket/a/b/",
        "s3://bucket//a/./b",
        "s3://bucket/a/c/../b",
        "s3://bucket/../bucket/a/b/c/..",
        Path("s3://bucket/a/b"),
    ],
)
def test_a_url_however_it_is_written(written: str | Path) -> None:
    """Also one that a Path has been made of: bucket, key, and the URL as its text."""
    path = locate(written)
    assert path == Location(BUCKET, "a/b")
    assert str(path) == "s3://bucket/a/b"


def test_it_is_joined_and_named_as_a_path() -> None:
    """Below, above, beside; in order; equal and of one hash;
    the same once it was sent to another process.
    """
    path = locate("gs://bucket/a") / "b.txt"
    assert isinstance(path, Location)
    assert (path.name, path.stem, path.suffix) == ("b.txt", "b", ".txt")
    assert (str(path.parent), str(path.parent.parent), str(path.with_name("c"))) == (
        "gs://bucket/a",
        "gs://bucket",
        "gs://bucket/a/c",
    )
    assert str(path.with_stem("c")) == "gs://bucket/a/c.txt"
    assert path == locate("gs://bucket/a/b.txt") == locate(path)
    assert len({path, locate("gs://bucket/a/b.txt"), locate("s3://bucket/a/b.txt")}) == 2
    assert sorted([path, path.with_name("a")]) == [path.with_name("a"), path]
    assert path.absolute() is path is path.resolve()
    assert pickle.loads(pickle.dumps(path)) == path
    assert str(locate("az://container") / "x/y") == "az://container/x/y"


def test_it_is_no_path_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system never gets it, no folder ``s3:`` is made,
    and a step that needs a disk refuses it in three lines.
    """
    monkeypatch.chdir(tmp_path)
    path = locate("s3://bucket/a")
    assert not isinstance(path, os.PathLike)
    assert locate("/x/s3:/y") == Path("/x/s3:/y")
    path.mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="is a URL") as caught:
        local_path(path)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    "url",
    [
        "https://host/x",
        "s3a://bucket/x",
        "s3://",
        "s3:///imagenet",
        "gs:////bucket/x",
        "s3://key:secret@bucket/x",
        "s3://bucket/x?a=secret",
        "s3://bucket/a/me@secret",
        "s3://bucket/../..",
        "s3://two words/a",
        "s3://bucket%2Fa",
        "s3://bucket/a\nb",
        "s3://bucket/a\udcffb",
    ],
)
def test_a_url_of_no_store(url: str) -> None:
    """Another scheme, no bucket, a key that no store has, credentials or a query: no secret is in the error."""
    with pytest.raises(UsageError) as caught:
        locate(url)
    assert "secret" not in str(caught.value)


def test_what_is_read_in_order_comes_in_few_requests() -> None:
    """From the second request on a MiB, then twice as much, up to 8 MiB;
    from elsewhere only what was asked for.
    """
    mib, store = 1 << 20, MemoryStore(objects={"b": bytes(40 << 20)})
    view = RangedView(store, "b")
    for offset in range(0, 32 * mib, 100_000):
        assert len(view[offset : offset + 100_000]) == 100_000
    assert [length // mib for _, _, length in store.asked] == [0, 1, 2, 4, 8, 8, 8, 8]
    view[5:105]
    assert store.asked[-1] == ("b", 5, 100)


# a store of one class -----------------------------------------------------------------------------


PART = ConvertOptions(allow_incomplete=True, train_shards=3, validation_shards=2)


def test_a_set_in_a_store_of_one_class(tiny_data_dir: Path) -> None:
    """Convert, verify, resume and open know nothing of the kind of store:
    the shards are those of a disk.
    """
    store, engine = MemoryStore(), ThreadEngine(2)
    here, there = Layout(tiny_data_dir), Layout(tiny_data_dir, output=Location(store, "sets/tiny"))
    for layout in (here, there):
        imagenet_prep.convert(layout, engine, PART)
        assert imagenet_prep.verify(layout, engine).problems == ()
    assert {name: store.objects[f"sets/tiny/{name}"] for name in there.shards.list()} == {
        path.name: path.read_bytes() for path in existing(tiny_data_dir, "*-of-*")
    }
    before = dict(store.objects)
    imagenet_prep.convert(there, engine, PART)
    assert {key: before[key] for key in before if "-of-" in key} == {
        key: value for key, value in store.objects.items() if "-of-" in key
    }
    records = imagenet_prep.open(there.output_dir, "train")
    assert [bytes(record.data) for record in records] == [
        bytes(record.data) for record in imagenet_prep.open(tiny_data_dir, "train")
    ]


@pytest.mark.parametrize("kind", ["disk", "memory"])
def test_only_the_first_claim_counts(kind: str, tmp_path: Path) -> None:
    """A later claim gets the first content, whoever made it; an equal claim succeeds again."""
    path = (
        tmp_path / "state" / "plan.json"
        if kind == "disk"
        else Location(MemoryStore(), "state/plan.json")
    )
    assert claim(path, b"first") == b"first"
    assert claim(path, b"second") == b"first"
    assert claim(path, b"first") == b"first"
    assert path.read_bytes() == b"first"
    assert [each.name for each in list(path.parent.iterdir())] == ["plan.json"]


def test_a_claim_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without hard links has the same answer."""

    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert [claim(tmp_path / "plan", content) for content in (b"first", b"second")] == [
        b"first",
        b"first",
    ]
    assert os.listdir(tmp_path) == ["plan"]


def test_a_journal_in_a_store_is_objects() -> None:
    """Each sync puts one; at the end one holds all lines, and the others are gone."""
    path = Location(MemoryStore(), "state/journal.jsonl")
    lines = append_to(path)
    for line in (b"1\n", b"2\n"):
        lines.append(line)
        lines.sync()
    lines.sync()
    assert [list(plain_lines(part)) for part in parts_of(path)] == [[b"1\n"], [b"2\n"]]
    lines.close()
    assert [list(plain_lines(part)) for part in parts_of(path)] == [[b"1\n", b"2\n"]]


class _ReadOnlyStore(MemoryStore):
    """Objects that its user may list and read, but not write."""

    def put(self, name: str, content: bytes | memoryview, *, is_new: bool = False) -> bool:
        """Refuse it."""
        raise AccessError(f"no access to {self.url(name)}", "status 403", "ask for the right")

    def delete(self, name: str) -> None:
        """Refuse it."""
        self.put(name, b"")


def test_who_may_only_read_a_store_verifies_and_reports(tiny_data_dir: Path) -> None:
    """The verdict is given, with a note that it is not saved; the page goes elsewhere."""
    store, engine = MemoryStore(), ThreadEngine(2)
    layout = Layout(tiny_data_dir, output=Location(store, "tiny"))
    imagenet_prep.convert(layout, engine, PART)
    read_only = Layout(Location(_ReadOnlyStore(objects=store.objects), "tiny"))
    verdict = imagenet_prep.verify(read_only, engine)
    assert verdict.problems == ()
    assert any("was not saved" in note and "only read" in note for note in verdict.notes)
    with pytest.raises(AccessError) as caught:
        write_report(read_only, engine, verdict)
    assert caught.value.hint == "name a file in another folder with --output"
    page = tiny_data_dir / "page.html"
    write_report(read_only, engine, verdict, page=page)
    assert page.stat().st_size > 0
