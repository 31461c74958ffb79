"""The table of images: each answer is that of plain lists, in memory and kept in a folder;
digests stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import pickle
import random
from array import array
from pathlib import Path

import numpy as np
import pytest
from existing import existing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_sets import catalog_rows, flip
from memory_store import MemoryStore

from imagenet_prep.model import Box
from imagenet_prep.recipes.columns import has_ending_of
from imagenet_prep.sources import blocks
from imagenet_prep.sources import names as names_module
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.fingerprint import fingerprint, names_and_sizes
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.saved_catalog import DamagedError, PackedCatalog, load_catalog
from imagenet_prep.sources.tars import Archive
from imagenet_prep.storage.location import Location

GOLDEN = "daa42f9213c35fb3ac7f62384dd59615108f1c597728dc5e66aa754e80f048ab"
QUICK = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NAME = st.text(st.sampled_from("aAb/_.é鸟jpegJPEGnpy0"), min_size=1, max_size=21)


@pytest.fixture(autouse=True, params=[3, 1 << 16])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked at by threes, or all together."""
    monkeypatch.setattr(names_module, "CHUNK", request.param)


@QUICK
@given(st.lists(NAME, max_size=30), st.randoms())
def test_names_are_what_lists_are(texts: list[str], chance: random.Random) -> None:
    """Names one by one, many at a time, in any order;
    found, chosen by their ends: as texts would be.
    """
    found = Names.take(texts)
    assert (len(found), list(found), [found[row] for row in range(len(texts))]) == (
        len(texts),
        texts,
        texts,
    )
    assert list(pickle.loads(pickle.dumps(found))) == texts
    rows = [chance.randrange(len(texts)) for _ in range(20 if texts else 0)]
    assert list(found.picked(rows)) == [texts[row] for row in rows]
    assert list(found.picked(range(1, len(texts)))) == texts[1:]
    encoded = [text.encode() for text in texts]
    assert [*found.repeated()] == [
        row for row, (one, other) in enumerate(itertools.pairwise(texts)) if one == other
    ]
    for lead in ("", "a/"):
        behind = [row for row, text in enumerate(texts) if text.startswith(lead)]
        runs = [*found.folders(behind, lead)]
        assert [place for places, *_ in runs for place in places] == [*range(len(behind))]
        for places, folder, slashes in runs:
            within = [texts[behind[place]] for place in places]
            parts = [text.removeprefix(lead).partition("/") for text in within]
            assert {name if slash else None for name, slash, _ in parts} == {folder}
            assert len(within) == 1 or folder is not None
            assert max(text.count("/") for text in within) == slashes
    assert found.chosen(lambda tail: has_ending_of("image", tail)).tolist() == [
        has_ending_of("image", text) for text in texts
    ]
    for kind in ("image", "array"):
        assert any(has_ending_of(kind, tail) for tail in found.endings()) == any(
            has_ending_of(kind, text) for text in texts
        )
    assert (
        {text for text in texts if "jpeg" in text.lower()}
        <= set(found.holding([b"jpeg"]))
        <= set(texts)
    )
    ordered = sorted(encoded)
    by_bytes = Names.take(each.decode() for each in ordered)
    for text in texts:
        assert by_bytes.find(text.encode()) == ordered.index(text.encode())
        folder = text.partition("/")[0] + "/"
        assert [row for row, each in enumerate(by_bytes) if each.startswith(folder)] == list(
            by_bytes.below(folder)
        )


def _catalog(texts: list[str], chance: random.Random, *, is_labelled: bool) -> Catalog:
    """A table of these names, in two archives, with numbers by chance, and boxes for some."""
    listing, ids = CatalogBuilder(Archive(Path("/a.tar")), Archive(Path("/b.tar"))), []
    for text in texts:
        listing.append(
            text, chance.randrange(2**40), chance.randrange(2**20), chance.randrange(2**62)
        )
        ids.append((chance.randrange(2), chance.randrange(3) if is_labelled else 0))
    found = listing.listed()
    found.split, found.classes = "s", {1: ("x", "an x"), 2: ("y", "a y")}
    found.container_ids, found.labels = np.array(ids, np.int8).reshape(-1, 2).T
    found.attach_boxes({text: [Box(0, 0, 0.5, 1)] * chance.randrange(3) for text in texts[::2]})
    found.columns = {"c": [chance.choice([None, 1, "ß"]) for _ in texts]}
    return found


@QUICK
@given(st.lists(NAME, max_size=25), st.randoms(), st.booleans())
def test_a_table_keeps_its_rows(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    chance: random.Random,
    is_labelled: bool,
) -> None:
    """Joined, sorted, brought to another order, cut down for a worker, kept in a folder:
    rows and digests stay.
    """
    plain = _catalog(texts, chance, is_labelled=is_labelled)
    plain.columns["d"] = [[0.1, number] for number in range(len(texts))]
    expected = catalog_rows(plain)
    halves = plain.picked(range(len(texts) // 2)), plain.picked(range(len(texts) // 2, len(texts)))
    joined = Catalog.join(halves, is_listed=True)
    assert [each[:2] for each in catalog_rows(joined, items=False)] == [
        each[:2] for each in expected
    ]
    ordered = Catalog.join([plain])
    rows = sorted(range(len(texts)), key=lambda row: (plain.labels[row], texts[row].encode(), row))
    assert [each[:2] for each in catalog_rows(ordered, items=False)] == [
        expected[row][:2] for row in rows
    ]
    folder = tmp_path_factory.mktemp("kept")
    packed = PackedCatalog.pack(plain)
    packed.save(folder)
    for wanted in (rows, range(len(texts) // 2), range(len(texts))):
        same = [expected[row] for row in wanted]
        assert catalog_rows(plain.picked(wanted)) == catalog_rows(plain.whole(wanted)) == same
        assert catalog_rows(pickle.loads(pickle.dumps(plain.whole(wanted)))) == same
        assert fingerprint(plain, wanted, "") == fingerprint(
            plain.picked(wanted), range(len(wanted)), ""
        )
        assert plain.size(wanted) == sum(row.length for row, *_ in same)
        if isinstance(wanted, range):
            kept = load_catalog(folder, packed.name, [wanted])
            assert catalog_rows(kept) == same
            assert (kept.split, fingerprint(kept, range(len(wanted)), "")) == (
                "s",
                fingerprint(plain, wanted, ""),
            )
    pieces = [range(0), range(len(texts) // 3), range(len(texts) // 2, len(texts))]
    assert catalog_rows(load_catalog(folder, packed.name, pieces)) == [
        expected[row] for piece in pieces for row in piece
    ]
    assert (
        names_and_sizes(plain)
        == names_and_sizes(load_catalog(folder, packed.name))
        == _first_digest(plain)
    )


def _first_digest(catalog: Catalog) -> str:
    """The digest that manifests have of a listing, as the first versions computed it."""
    digest = hashlib.sha256("".join(catalog.names).encode())
    digest.update(array("Q", catalog.lengths.tolist()).tobytes())
    digest.update(array("H", catalog.labels.tolist()).tobytes())
    return digest.hexdigest()


def test_fingerprints_stay() -> None:
    """A golden value: what sets hold."""
    catalog = _catalog(["b/1.jpg", "a/é.jpg", "a/2.jpg"], random.Random(1), is_labelled=True)
    assert fingerprint(catalog, [2, 0, 1], '{"a": 1}') == GOLDEN


def _saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> PackedCatalog:
    """A table saved in blocks of 16 bytes."""
    monkeypatch.setattr(blocks, "BLOCK", 16)
    names = [f"{number}/é.jpg" for number in range(20)]
    packed = PackedCatalog.pack(_catalog(names, random.Random(1), is_labelled=True))
    packed.save(folder)
    return packed


@pytest.mark.parametrize("fault", ["gone", "cut", "longer", "empty"])
def test_a_saved_table_with_another_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Each file of a saved table, gone, cut, longer or empty:
    the table is damaged, and no error of another kind.
    """
    name = _saved(tmp_path, monkeypatch).name
    for path in existing(tmp_path, "*"):
        content = path.read_bytes()
        changes = {"cut": content[:-1], "longer": content + b"\0", "empty": b""}
        path.unlink()
        if fault in changes:
            path.write_bytes(changes[fault])
        with pytest.raises(DamagedError, match="can't be used: "):
            load_catalog(tmp_path, name)
        path.write_bytes(content)
    assert len(load_catalog(tmp_path, name)) == 20


@pytest.mark.once
def test_all_that_is_read_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit in every third byte of a saved table: all rows are refused;
    some rows are refused, or are as they were.
    """
    name = _saved(tmp_path, monkeypatch).name
    pieces = [range(2, 4), range(11, 12)]
    expected, passed = catalog_rows(load_catalog(tmp_path, name, pieces)), 0
    for path in existing(tmp_path, "*"):
        content = path.read_bytes()
        for place in range(0, len(content), 3):
            path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
            with pytest.raises(DamagedError):
                load_catalog(tmp_path, name)
            with contextlib.suppress(DamagedError):
                assert catalog_rows(load_catalog(tmp_path, name, pieces)) == expected
                passed += 1
        path.write_bytes(content)
    assert passed > 30, "blocks that are not needed are not read"


def test_a_damaged_table_is_saved_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who saves the same table mends it; an intact one is not written again."""
    packed, path = _saved(tmp_path, monkeypatch), tmp_path / "offsets.bin"
    before = path.stat()
    packed.save(tmp_path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    flip(path, 3)
    packed.save(tmp_path)
    assert len(load_catalog(tmp_path, packed.name)) == 20


def test_a_table_in_a_store_is_checked_and_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged object is written again; some rows are asked for by blocks,
    one request per array and no more bytes.
    """
    monkeypatch.setattr(blocks, "BLOCK", 16)
    store = MemoryStore()
    folder = Location(store, "plan/rows")
    names = [f"{number:03}.jpg" for number in range(200)]
    packed = PackedCatalog.pack(_catalog(names, random.Random(1), is_labelled=True))
    packed.save(folder)
    for key in [key for key in store.objects if store.objects[key]]:
        sound = store.objects[key]
        store.objects[key] = sound[:-1] + bytes([sound[-1] ^ 1])
        with pytest.raises(DamagedError):
            load_catalog(folder, packed.name)
        del store.objects[key]
        with pytest.raises(DamagedError):
            load_catalog(folder, packed.name)
        packed.save(folder)
        assert store.objects[key] == sound
    store.asked.clear()
    few = load_catalog(folder, packed.name, [range(50, 53), range(150, 151)])
    assert list(few.names) == [names[row] for row in (50, 51, 52, 150)]
    ranges = [asked for asked in store.asked if str(asked[0]).endswith(".bin")]
    assert len({asked[0] for asked in ranges}) == 11
    assert len(ranges) <= 2 * 11
    assert all(int(str(size)) <= 64 for _, _, size in ranges)
