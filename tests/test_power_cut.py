"""Power cuts: what the simulator takes from a disk; each command goes on from whatever is left, to
the same bytes.

Commands run under strace; their writes, renames and syncs are replayed up to every point, and the
files that a disk may hold there are made. ``make torture`` tries all of them; here a sample.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import itertools
import json
import os
import random
import shutil
import tarfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from existing import existing
from fault_server import fault_server
from made_tars import save
from power_cut import Commands, Disk, Run, build, flat, record_run
from scenarios import FOLDER, Recording, differing, record_scenario, results, run_after, scenarios
from syscalls import Operation, record, require_strace

from imagenet_prep.demo.archives import make
from imagenet_prep.fetch.partial import PartialFile
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.ilsvrc2012.facts import ARCHIVES

pytestmark = pytest.mark.once

# the simulator ------------------------------------------------------------------------------------


def operations(script: str) -> list[Operation]:
    """Operations from lines of words: kind, path, then a rename's other path or a write's bytes;
    "." is the folder.
    """
    found: list[Operation] = []
    for number, line in enumerate(textwrap.dedent(script).strip().splitlines()):
        kind, path, *rest = line.split()
        path = "" if path == "." else path
        if kind == "make":
            found.append(Operation("open", path, flags=frozenset({"creat"})))
        elif kind == "write":
            found.append(Operation("write", path, offset=-1, data=rest[0].encode()))
        elif kind == "fsync":
            found += [Operation("sync", path, call=number), Operation("synced", path, call=number)]
        elif kind == "syncfs":
            found += [Operation("sync", None, call=number), Operation("synced", None, call=number)]
        else:
            found.append(Operation(kind, path, *rest))  # type: ignore[arg-type]
    return found


def left(folder: Path, script: str) -> list[dict[str, bytes]]:
    """What a power cut after the last line may leave, the worst first."""
    return [flat(tree) for _, tree in Run(folder, operations(script)).end().after_cut()]


def test_bytes_and_names_are_lost_by_themselves(tmp_path: Path) -> None:
    """An fsync of a file does not save its name, one of the folder not its bytes."""
    assert left(tmp_path, "make a\nwrite a new\nfsync a")[0] == {}
    assert left(tmp_path, "make a\nwrite a new\nfsync .")[0] == {"a": b""}
    everything = left(tmp_path, "make a\nwrite a new\nfsync .")
    assert {b"", b"n", b"\0\0\0", b"new"} == {files["a"] for files in everything}


def test_a_renaming_without_a_sync_may_leave_an_empty_file_or_the_old_one(tmp_path: Path) -> None:
    """The classic fault: write, rename, and hope."""
    (tmp_path / "a").write_bytes(b"old")
    found = left(tmp_path, "make p\nwrite p new\nrename p a")
    assert found[0] == {"a": b"old"}
    assert {b"old", b"", b"new"} <= {files["a"] for files in found}
    synced = left(tmp_path, "make p\nwrite p new\nfsync p\nrename p a")
    assert {files["a"] for files in synced} == {b"old", b"new"}
    assert {
        files["a"] for files in left(tmp_path, "make p\nwrite p new\nfsync p\nrename p a\nfsync .")
    } == {b"new"}


def test_a_file_that_is_moved_is_not_lost_between_folders(tmp_path: Path) -> None:
    """With one folder synced and the other not, it is in one of them at least."""
    (tmp_path / "to").mkdir()
    save(tmp_path / "from" / "a", b"data")
    for synced in ("from", "to"):
        for files in left(tmp_path, f"rename from/a to/a\nfsync {synced}"):
            assert b"data" in files.values()


@pytest.mark.parametrize(
    "script",
    [
        "import mmap, os; f = open('a', 'w+b'); f.truncate(9); mmap.mmap(f.fileno(), 9)[:1] = b'x'",
        "import os; os.symlink('a', 'b')",
        "import os; os.mkdir('a'); os.chdir('a')",
        "import os; os.rename('inside', '../outside')",
    ],
)
def test_what_is_not_followed_is_refused(tmp_path: Path, script: str) -> None:
    """Rather than give a wrong list, the recorder stops."""
    require_strace()
    (tmp_path / "inside").touch()
    with pytest.raises(ValueError, match=r"is not followed|across the folder's edge"):
        record(["-c", script], tmp_path)


# the commands -------------------------------------------------------------------------------------

SCENARIOS = scenarios(shards=2, workers=1)

Recordings = Callable[[str], Recording]

SAMPLE = 2
"""So many of a command's trees are run here; make torture runs them all."""


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """What runs imagenet-prep many times."""
    with Commands() as commands:
        yield commands


@pytest.fixture(scope="module")
def recordings(
    tmp_path_factory: pytest.TempPathFactory, commands: Commands
) -> Iterator[Recordings]:
    """Every scenario recorded once, when it is first asked for."""
    require_strace()
    folder = tmp_path_factory.mktemp("power")
    made = make(folder / "made", classes=2, per_class=4, validation=4, tiny=True)
    yield functools.cache(lambda name: record_scenario(SCENARIOS[name], folder, made, commands))
    shutil.rmtree(folder)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder for many short runs: in memory where there is such a place,
    since their own syncs decide nothing.
    """
    memory = Path("/dev/shm")
    folder = (
        memory / f"imagenet-prep-test-{os.getpid()}"
        if os.access(memory, os.W_OK)
        else tmp_path / "quick"
    )
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


each_scenario = pytest.mark.parametrize("name", SCENARIOS)


@each_scenario
def test_what_is_done_at_exit_is_on_the_disk(name: str, recordings: Recordings) -> None:
    """A power cut right after status 0 takes nothing:
    all is there, to the byte, with everything unsynced dropped.
    """
    recording = recordings(name)
    assert not differing(recording, recording.end().durable())


@each_scenario
def test_a_power_cut_at_any_moment_costs_no_byte(
    name: str, recordings: Recordings, commands: Commands, quick: Path
) -> None:
    """Whatever a power cut left, the same command goes on from there and
    ends with the bytes of an unbroken run.
    """
    recording = recordings(name)
    assert len(recording.operations) > 20
    for done, called, tree in recording.some_trees(random.Random(name), SAMPLE):
        folder = quick / FOLDER
        build(tree, folder)
        fault = run_after(recording, folder, commands, called)
        assert not fault, (
            f"{called}, after {done} of {len(recording.operations)} operations: {fault}"
        )
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["convert", "consume", "overwrite"])
def test_a_journal_line_on_the_disk_speaks_of_files_on_the_disk(
    name: str, recordings: Recordings
) -> None:
    """At the end of every sync of the journal, each shard with a line is
    there with both files of its index.
    """
    recording = recordings(name)
    lines = 0
    for operation, disk in recording.steps():
        if operation.kind != "synced" or not str(operation.path).endswith("journal.jsonl"):
            continue
        durable = disk.durable()
        for line in durable["imagenet-prep/journal.jsonl"].splitlines():
            shard = json.loads(line)["name"]
            if recording.expected_line(shard) != line:
                continue  # of the set that was there before
            lines += 1
            for path in (
                shard,
                *(f"imagenet-prep/index/{shard}.{kind}" for kind in ("idx", "list")),
            ):
                assert durable.get(path) == recording.expected[path], (
                    f"{path} after its line in the journal"
                )
    assert lines >= 3


@pytest.mark.parametrize("name", ["convert", "overwrite", "repair"])
def test_a_shard_gets_its_name_once_its_bytes_are_safe(name: str, recordings: Recordings) -> None:
    """Between the last write of a shard and its renaming there is an fsync of it; a name that was
    taken is synced next.

    Else the old shard could come back under the new line of the journal.
    """
    recording = recordings(name)
    disk = Disk(recording.before)
    shards = 0
    for number, operation in enumerate(recording.operations):
        is_shard = operation.kind == "rename" and "/" not in operation.to
        was_taken = is_shard and operation.to in disk.root.now
        disk.apply(operation)
        if not is_shard:
            continue
        shards += 1
        tree = disk.tree(data=lambda file: file.durable)
        assert tree[operation.to] == disk.tree()[operation.to], (
            f"{operation.to} is renamed before it is safe"
        )
        if was_taken:
            line = f'"{operation.to}"'.encode()
            following = recording.operations[number + 1 :]
            before_line = itertools.takewhile(
                lambda each, line=line: line not in each.data, following
            )  # type: ignore[misc]
            assert any(each.kind == "synced" and each.path in ("", None) for each in before_line), (
                operation.to
            )
    assert shards >= 2


def test_space_is_given_back_of_what_is_durable_elsewhere(recordings: Recordings) -> None:
    """Before each hole, and before the archive goes, every image in it is on the disk in a bundle
    or a shard.

    So it is with everything unsynced dropped, and the number of images on record is then no more
    than those there.
    """
    recording = recordings("consume")
    given_back = {"punch": 0, "unlink": 0}
    images = {path: _images(path) for path in existing(recording.before, "raw-data/*_img_*.tar")}
    disk = Disk(recording.before)
    for operation in recording.operations:
        name = str(operation.path).rpartition("/")[2]
        archive = next((each for each in images if each.name == name), None)
        if archive is not None and operation.kind in given_back:
            stop = operation.offset + operation.size if operation.kind == "punch" else 1 << 60
            before = [content for start, content in images[archive] if start < stop]
            durable = disk.durable()
            kept = b"".join(
                data for path, data in durable.items() if "/bundles/" in path or "-of-" in path
            )
            assert all(content in kept for content in before)
            rows = json.loads(durable[operation.path.replace(f"files/{name}", "record.json")])[
                "rows"
            ]  # type: ignore[union-attr]
            assert rows == len(before)
            given_back[operation.kind] += len(before)
        disk.apply(operation)
    assert min(given_back.values()) >= 4


@pytest.mark.parametrize("name", ["consume", "consume-again"])
def test_no_power_cut_takes_the_last_copy_of_an_image(name: str, recordings: Recordings) -> None:
    """Whatever is left at any moment, each image is in its archive, in a bundle or in a shard."""
    recording = recordings(name)
    archives = existing(recording.before, "raw-data/*_img_*.tar")
    made = b"\n".join(recording.expected.values())
    images = {
        content for path in archives for _, content in _images(path) if content in made
    }  # not re-encoded
    assert len(images) >= 8
    held: dict[int, frozenset[bytes]] = {}  # which images each content of a file holds
    for done, called, tree in recording.replay():
        kept: set[bytes] = set()
        for data in flat(tree).values():
            if hash(data) not in held:
                held[hash(data)] = frozenset(image for image in images if image in data)
            kept |= held[hash(data)]
        assert kept == images, f"{called}, after {done}"


def test_an_archive_to_consume_has_one_name_on_the_disk(recordings: Recordings) -> None:
    """It is moved away durably, so it never comes back under its old name
    once its images are read.
    """
    taken: dict[str, str] = {}
    archives = 0
    for operation, disk in recordings("consume").steps():
        if operation.kind == "rename" and str(operation.path).endswith(".tar"):
            taken[operation.to] = str(operation.path)
        elif operation.kind == "write" and taken:
            durable = disk.durable()
            assert taken.keys() <= durable.keys()
            assert not {*taken.values()} & durable.keys()
            archives += len(taken)
            taken = {}
    assert archives == 2


def test_a_record_of_a_rank_goes_once_the_set_has_its_own(recordings: Recordings) -> None:
    """The manifest and the journal of the whole set are on the disk before
    merge removes what ranks recorded.
    """
    recording = recordings("merge")
    removed = 0
    for operation, disk in recording.steps():
        if operation.kind == "unlink" and "rank-" in str(operation.path):
            durable = disk.durable()
            found = results({path: data for path, data in durable.items() if "rank-" not in path})
            for path in ("imagenet-prep/manifest.json", "imagenet-prep/journal.jsonl"):
                assert found.get(path) == recording.expected[path], (
                    f"{path} after {operation.path} went"
                )
            removed += 1
    assert removed == 4


def _images(archive: Path) -> list[tuple[int, bytes]]:
    """Where each image of an archive begins, and its bytes."""
    data, found = archive.read_bytes(), []
    with tarfile.open(archive) as outer:
        for member in outer:
            start, stop = member.offset_data, member.offset_data + member.size
            if not member.name.endswith(".tar"):
                found.append((start, data[start:stop]))
                continue
            with tarfile.open(fileobj=io.BytesIO(data[start:stop])) as inner:
                places = [(start + each.offset_data, each.size) for each in inner]
            found += [(place, data[place : place + size]) for place, size in places]
    return found


def test_untar_moves_a_class_after_a_sync_of_all_its_files(recordings: Recordings) -> None:
    """No image gets a name in its final folder before its bytes are on the disk,
    in a merge neither.
    """
    for name in ("untar", "untar-again"):
        moved = 0
        for operation, disk in recordings(name).steps():
            if operation.kind == "rename":
                moved += 1
                tree = flat(disk.tree(data=lambda file: file.durable))
                assert {path: data for path, data in tree.items() if ".partial" not in path} == {
                    path: data for path, data in flat(disk.tree()).items() if ".partial" not in path
                }
        assert moved >= 2


# downloads ----------------------------------------------------------------------------------------

PARTIAL = """
import itertools
from pathlib import Path
from imagenet_prep.fetch.partial import PartialFile, finish
from imagenet_prep.fetch.reply import Remote

part, final = Path("raw-data/.partial/a.part"), Path("raw-data/a")
first, second = (Remote("https://x/a", 3000, version, None) for version in ("one", "two"))

def mark(text, number=itertools.count()):
    Path(f"{next(number)} {text}").mkdir()

def save(file):
    file.save()
    mark(f"saved {file.spans()}")

with PartialFile(part, first) as file:
    for start in (0, 2000, 1000):
        file.write(start, b"1" * 500)
        save(file)
        file.write(start + 500, b"1" * 500)
    save(file)
with PartialFile(part, second) as file:
    for start in (1000, 0):
        file.write(start, b"2" * 1000)
        save(file)
    file.write(2000, b"2" * 400)
    save(file)
    file.reset()
    mark("reset")
    file.write(0, b"3" * 3000)
    save(file)
finish(part, final)
mark("finished")
"""
"""Writes and saves in every order; each marker tells that what comes
before it must be on the disk.
"""


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What a partial file's whole life does to a DATA_DIR."""
    require_strace()
    return record_run(
        ["-c", PARTIAL], tmp_path_factory.mktemp("partial") / "run", **{"raw-data/other": b""}
    )


def test_a_partial_file_never_says_too_much(partial: Run, quick: Path) -> None:
    """Whatever a power cut leaves: each span that the state claims holds
    the bytes that arrived for that version.
    """
    part = quick / "data/raw-data/.partial/a.part"
    most = {"one": 0, "two": 0}
    for done, called, tree in partial.replay():
        for version, allowed in (("one", (b"1",)), ("two", (b"2", b"3"))):
            build(tree, quick / "data")
            with PartialFile(part, Remote("https://x/a", 3000, version, None)) as file:
                for start, stop in file.spans():
                    content = part.read_bytes()[start:stop]
                    assert any(content == byte * (stop - start) for byte in allowed), (
                        f"{called}, after {done}"
                    )
                    most[version] = max(most[version], stop - start)
            shutil.rmtree(quick / "data")
    assert most == {"one": 3000, "two": 3000}


def test_what_was_saved_stays(partial: Run) -> None:
    """After a save its spans are on the disk, bytes and state;
    after a reset none; after the end the whole file.
    """
    markers = []
    for operation, disk in partial.steps():
        if operation.kind != "mkdir" or "/" in str(operation.path) or operation.path == "raw-data":
            continue
        files = disk.durable()
        state = files.get("raw-data/.partial/a.part.json")
        _, told, *rest = str(operation.path).split(" ", 2)
        markers.append(told)
        if told == "saved":
            spans = ast.literal_eval(rest[0])
            assert json.loads(state)["done"] == [list(span) for span in spans]
            for start, stop in spans:
                assert len(set(files["raw-data/.partial/a.part"][start:stop])) == 1
        else:
            assert state is None or told == "finished"
            assert told == "finished" or flat(disk.tree())["raw-data/.partial/a.part"] == b""
            assert told == "reset" or files["raw-data/a"] == b"3" * 3000
    assert markers == ["saved"] * 7 + ["reset", "saved", "finished"]


def test_a_file_being_finished_is_never_lost(partial: Run) -> None:
    """From the last save on it is whole under one of its names,
    and as a partial file known to be whole.
    """
    last = [number for number, each in enumerate(partial.operations) if each.kind == "mkdir"][-2]
    seen = set()
    for number, called, tree in partial.replay():
        if number <= last:
            continue
        files = flat(tree)
        if "raw-data/a" in files:
            assert files["raw-data/a"] == b"3" * 3000, called
            seen.add("final")
        else:
            assert files["raw-data/.partial/a.part"] == b"3" * 3000, called
            assert json.loads(files["raw-data/.partial/a.part.json"])["done"] == [[0, 3000]], called
            seen.add("partial")
    assert seen == {"partial", "final"}


def test_a_file_is_synced_before_it_is_finished(tmp_path: Path) -> None:
    """Bytes that no save has made durable are so before the file gets its name."""
    require_strace()
    script = PARTIAL.partition("first, second")[0] + textwrap.dedent("""
        with PartialFile(part, Remote("https://x/a", 3000, "one", None)) as file:
            file.write(0, b"3" * 3000)
        final.parent.mkdir(exist_ok=True)
        finish(part, final)
    """)
    trees = [flat(tree) for _, _, tree in record_run(["-c", script], tmp_path / "run").replay()]
    assert {files["raw-data/a"] for files in trees if "raw-data/a" in files} == {b"3" * 3000}


DOWNLOAD = """
import sys
from pathlib import Path
from imagenet_prep.errors import InputError
from imagenet_prep.storage.layout import Layout
from imagenet_prep.stages.download import DownloadOptions, download

url, digest = sys.argv[1:]
try:
    download(Layout(Path(".")), DownloadOptions(base_url=url, digests={"boxes": digest}), only=["boxes"])
except InputError as error:
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("is_right", [True, False])
def test_a_download_gets_its_name_once_its_digest_is_right(is_right: bool, tmp_path: Path) -> None:
    """A file whose digest differs never stands under the archive's name, not for a moment."""
    require_strace()
    content, name = random.Random(3).randbytes(30_000), ARCHIVES["boxes"].filename
    save(tmp_path / "served" / name, content)
    digest = hashlib.md5(content if is_right else b"other").hexdigest()
    with fault_server(tmp_path / "served") as server:
        run = record_run(
            ["-c", DOWNLOAD, server.url, digest], tmp_path / "run", status=0 if is_right else 4
        )
    trees = [flat(tree) for _, _, tree in run.replay()]
    final = f"raw-data/{name}"
    assert {files[final] for files in trees if final in files} == ({content} if is_right else set())
    assert any(name in path for files in trees for path in files)
    if is_right:
        assert run.end().durable()[final] == content


# one file at a time -------------------------------------------------------------------------------


JOURNAL = """
from pathlib import Path
from imagenet_prep.state.journal import Journal
from imagenet_prep.model import ShardInfo

with Journal(Path("journal.jsonl")) as journal:
    journal.append(ShardInfo("a", "f", 1, 2, "d", (), ()))
    journal.sync()
    Path("synced").mkdir()
    journal.append(ShardInfo("b", "f", 1, 2, "d", (), ()))
Path("closed").mkdir()
"""


def test_a_journal_line_stays_once_it_is_synced(tmp_path: Path) -> None:
    """Sync and close make every line so far durable, and the journal's own name."""
    require_strace()
    lines = []
    for operation, disk in record_run(["-c", JOURNAL], tmp_path / "run").steps():
        if operation.kind == "mkdir":
            journal = disk.durable().get("journal.jsonl", b"")
            lines.append([json.loads(line)["name"] for line in journal.splitlines()])
    assert lines == [["a"], ["a", "b"]]


def test_an_atomic_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    """Old bytes or new ones at every moment, the new ones for good once it is closed."""
    require_strace()
    script = (
        "from pathlib import Path; from imagenet_prep.storage.files import save_bytes\n"
        "save_bytes(Path('a'), b'new' * 999)"
    )
    run = record_run(["-c", script], tmp_path / "run", a=b"old")
    assert {flat(tree)["a"] for _, _, tree in run.replay()} == {b"old", b"new" * 999}
    assert run.end().durable() == {"a": b"new" * 999}
