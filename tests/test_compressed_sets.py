"""Compressed sets: a flip that changes no record is found all the same, and the very bytes come back."""

from __future__ import annotations

import hashlib
import shutil
import zlib
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, PART, converted, copied, edit_manifest

from imagenet_prep.checks.shard_check import ShardCheck
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.stages.repair import repair
from imagenet_prep.stages.verify import verify
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import compression as compressed

K = ProblemKind
SHARD = "train-00003-of-00008"
WINDOW = {"gzip": 31, "zlib": 15}
TRAILER = {"gzip": 8, "zlib": 4}


@pytest.fixture(scope="module", params=["gzip", "zlib"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """Compressed shards of ``made_tiny`` beside its archives. Read only."""
    options = PART.replace(compression=request.param)
    return converted(tmp_path_factory.mktemp(request.param) / "data", made_tiny, options)


@pytest.fixture
def layout(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``."""
    return copied(sound, tmp_path / "data")


def compression_of(layout: Layout) -> str:
    """How the shards are compressed, as the manifest says."""
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    return str(manifest.settings["compression"])


def harmless_flips(content: bytes, compression: str) -> list[bytes]:
    """The file with each bit flipped, in its header and in the byte before its trailer, that changes no record."""
    plain = zlib.decompress(content, WINDOW[compression])
    found = []
    for position in (*range(10), len(content) - TRAILER[compression] - 1):
        for bit in range(8):
            flipped = content[:position] + bytes((content[position] ^ 1 << bit,)) + content[position + 1 :]
            stream = zlib.decompressobj(WINDOW[compression])
            try:
                is_same = stream.decompress(flipped) == plain and stream.eof and not stream.unused_data
            except zlib.error:
                continue
            if is_same:
                found.append(flipped)
    return found


def the_problem(layout: Layout) -> Problem:
    """The one problem that a full verify finds."""
    (problem,) = verify(layout, ENGINE).problems
    return problem


def test_flips_that_change_no_record(layout: Layout) -> None:
    """A bit of a gzip header or of deflate's padding: named with both digests, and repair brings back the bytes."""
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    check = ShardCheck(layout, ImageNetExaminer(), manifest.shards, compression_of(layout))  # type: ignore[arg-type]
    tried = 0
    for path in existing(layout.data_dir, "train-*"):
        content = path.read_bytes()
        flips = harmless_flips(content, compression_of(layout))
        for flipped in flips[:: 9 if tried > 60 else 1]:
            tried += 1
            path.write_bytes(flipped)
            (problem,) = check(path.name).problems
            assert (problem.kind, problem.subject) == (K.BAD_COMPRESSION, path.name)
            assert problem.expected == hashlib.sha256(content).hexdigest()
            assert problem.got == hashlib.sha256(flipped).hexdigest()
            assert "the records are right, the bytes around them are not" in problem.detail
        if flips:
            last, sound = path, content
        path.write_bytes(content)
    assert tried >= (60 if compression_of(layout) == "gzip" else 1)
    last.write_bytes(flipped)
    assert verify_and_repair(layout, ENGINE).repair.made == (last.name,)
    assert last.read_bytes() == sound


def test_what_is_recorded(layout: Layout) -> None:
    """Manifest and journal record the SHA-256 of each compressed file."""
    manifest, journal = load_manifest(layout.manifest_path), Journal(layout.journal_path)
    assert manifest is not None
    for name, info in manifest.shards.items():
        assert info.file_digest == hashlib.sha256(layout.shard_path(name).read_bytes()).hexdigest()
        assert journal.get(name) == info
    assert len(manifest.shards) == 16


def test_other_damage_is_told_once(layout: Layout) -> None:
    """Damage of the records, of the stream or of the size is one problem, not one more for the file's bytes."""
    path = layout.shard_path(SHARD)
    content = path.read_bytes()
    window = WINDOW[compression_of(layout)]
    packer = zlib.compressobj(9, wbits=window)
    path.write_bytes(packer.compress(zlib.decompress(content, window)) + packer.flush())
    kind = K.WRONG_SIZE if path.stat().st_size != len(content) else K.BAD_COMPRESSION
    assert the_problem(layout).kind == kind
    path.write_bytes(content[:-1])
    assert the_problem(layout).kind == K.TRUNCATED
    shutil.copy(layout.shard_path("train-00004-of-00008"), path)
    assert the_problem(layout).kind == K.EXCHANGED_SHARD


def test_repair_refuses_other_bytes(layout: Layout) -> None:
    """A shard of the right records and size that comes out in other bytes is not put in its place."""
    edit_manifest(layout, lambda manifest: manifest["shards"][SHARD].update(file_digest="0" * 64))
    layout.journal_path.unlink()
    before = layout.shard_path(SHARD).read_bytes()
    with pytest.raises(InputError, match="another library makes other bytes"):
        repair(layout, ENGINE, {SHARD: (K.BAD_COMPRESSION,)})
    assert layout.shard_path(SHARD).read_bytes() == before


def test_a_digest_that_is_none(layout: Layout) -> None:
    """A manifest whose digest of a file is no text is damaged."""
    edit_manifest(layout, lambda manifest: manifest["shards"][SHARD].update(file_digest=7))
    layout.journal_path.unlink()
    first = verify(layout, ENGINE, allow_incomplete=True).problems[0]
    assert (first.kind, first.detail) == (K.BAD_MANIFEST, f"{layout.manifest_path} can't be understood")


def test_plain_sets_record_none(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Of plain shards no digest of a file is written."""
    layout = converted(tmp_path / "data", made_tiny)
    assert b"file_digest" not in layout.manifest_path.read_bytes() + layout.journal_path.read_bytes()
    assert compressed.detect(memoryview(layout.shard_path(SHARD).read_bytes())) == "none"
