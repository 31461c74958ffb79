"""Downloading a part of ImageNet: of the train archive only the classes that are wanted,
by ranges of its bytes.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from existing import existing
from fault_server import Faults, FaultServer, fault_server
from made_folders import write
from made_sets import ENGINE, flip
from made_tars import pack, unpack
from paced_server import paced_server, sent_by
from running import command

from imagenet_prep import ConvertOptions, DownloadOptions, Layout, convert, download, run, status
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.errors import InputError, NetworkError, SpaceError
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import Part, find_part
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.ilsvrc2012.raw_data import find_source
from imagenet_prep.model import Silent
from imagenet_prep.pipeline import missing_archives
from imagenet_prep.stages.download import DownloadSummary, foresee

pytestmark = pytest.mark.once

PART = find_part("imagenette")
TRAIN = ARCHIVES["train"].filename
PACE = Pace(tries=3, first_wait=0.001, longest_wait=0.01, stall=2, save_every=0.02, segment=40_000)
SHARDS = {"train_shards": 4, "validation_shards": 2}


def _class_tar(wnid: str, images: list[bytes], count: int) -> bytes:
    return pack(
        {f"{wnid}_{number}.JPEG": images[number % len(images)] for number in range(1, count + 1)}
    )


def _write(archive: Path, tars: dict[str, bytes]) -> None:
    """An archive of class tars."""
    archive.write_bytes(pack({f"{wnid}.tar": content for wnid, content in tars.items()}))


def _serve(folder: Path, tars: dict[str, bytes], images: list[bytes]) -> None:
    """The archives of train images, of the validation images of ten classes, and of some boxes."""
    folder.mkdir()
    _write(folder / TRAIN, tars)
    names = PART.validation_filenames()
    validation = pack({name: images[n % len(images)] for n, name in enumerate(names)})
    (folder / ARCHIVES["validation"].filename).write_bytes(validation)
    with tarfile.open(folder / ARCHIVES["boxes"].filename, "w:gz") as tar:
        tar.add(Path(__file__).parents[1] / "data" / "bounding_boxes" / "n01440764", "n01440764")


@pytest.fixture(scope="module")
def images() -> list[bytes]:
    """Some images of 16x16 pixels."""
    return [photographs.tiny(seed, Kind.RGB) for seed in range(20)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, images: list[bytes]) -> Path:
    """A server's folder: ten classes as large as the smallest real one, 990 of one image each."""
    counts = {wnid: 732 if wnid in PART.labels else 1 for wnid in facts.synsets()}
    folder = tmp_path_factory.mktemp("server") / "served"
    _serve(
        folder, {wnid: _class_tar(wnid, images, count) for wnid, count in counts.items()}, images
    )
    return folder


@pytest.fixture(scope="module")
def tars(images: list[bytes]) -> dict[str, bytes]:
    """The tars of ten classes of some 200 kB, others between them."""
    wnids = sorted({*PART.labels, *facts.synsets()[::100]})
    return {wnid: _class_tar(wnid, images, 150 if wnid in PART.labels else 2) for wnid in wnids}


@pytest.fixture
def server(tmp_path: Path, tars: dict[str, bytes], images: list[bytes]) -> Iterator[FaultServer]:
    """A server of these, which does what it is told."""
    _serve(tmp_path / "served", tars, images)
    with fault_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A DATA_DIR that doesn't exist yet."""
    return Layout(tmp_path / "data")


def _download(
    server: FaultServer, layout: Layout, part: Part = PART, **options: Any
) -> DownloadSummary:
    rest = {key: options.pop(key) for key in ("only", "before", "progress") if key in options}
    settings = DownloadOptions(
        base_url=server.url, **{"check_digest": False, "pace": PACE, **options}
    )
    return download(layout, settings, part=part, **{"only": ["train"], **rest})


def _tars_in(layout: Layout) -> dict[str, bytes]:
    return {
        path.stem: path.read_bytes()
        for path in existing(layout.class_tars_dir(ARCHIVES["train"]), "*")
    }


def _assert_whole(layout: Layout, tars: dict[str, bytes], part: Part = PART) -> None:
    assert _tars_in(layout) == {wnid: tars[wnid] for wnid in part.labels}
    assert list(layout.raw_partial_dir.iterdir()) == []


# the whole way ------------------------------------------------------------------------------------


def test_ten_classes_cost_ten_classes(served: Path, tmp_path: Path) -> None:
    """run --classes makes a whole part, and the server sends these classes,
    the rest of it, and 2 MB at most.
    """
    options = ConvertOptions(**SHARDS, classes="imagenette", relabel=0)
    tars = unpack(served / TRAIN)
    wanted = sum(len(tars[f"{wnid}.tar"]) for wnid in PART.labels)
    others = sum(path.stat().st_size for path in existing(served, "*") if path.name != TRAIN)
    with paced_server(served) as url:
        fetching = DownloadOptions(base_url=url, check_digest=False)
        done = run(Layout(tmp_path / "data"), ENGINE, fetching=fetching, options=options)
        sent = sent_by(url)
        assert done.download is not None
        assert done.download.fetched[-1] == f"10 classes of {TRAIN}"
        assert done.download.size == wanted + others
        assert (
            wanted + others <= sent <= wanted + others + 2_000_000 - 1000 * 400
        )  # each answer has headers, too
        assert (done.verify.level, done.verify.dataset) == ("as listed", "imagenette")
        assert [total.records for total in done.verify.totals] == [7320, 500]
        again = run(Layout(tmp_path / "data"), ENGINE, fetching=fetching, options=options)
        assert (again.download, sent_by(url)) == (None, sent)


def test_class_tars_arrive(server: FaultServer, layout: Layout, tars: dict[str, bytes]) -> None:
    """Each class lies under its name, byte for byte, and nothing is left of its transfer."""
    assert [each.name for each in foresee(layout, only=["train"], part=PART)] == [
        f"10 classes of {TRAIN}"
    ]
    summary = _download(server, layout, connections=4)
    _assert_whole(layout, tars)
    assert (summary.fetched, summary.present) == ((f"10 classes of {TRAIN}",), ())
    assert summary.size == sum(len(tars[wnid]) for wnid in PART.labels)
    assert missing_archives(layout, part=PART) == ("validation", "boxes")
    assert "train" in missing_archives(layout)


def test_what_is_there_is_not_fetched(
    server: FaultServer, layout: Layout, tars: dict[str, bytes], tmp_path: Path
) -> None:
    """A second run asks nobody; a larger part fetches what it has more."""
    path = tmp_path / "two.txt"
    path.write_text("\n".join(list(PART.labels)[3:5]))
    _download(server, layout, find_part(str(path)))
    first = _tars_in(layout)
    summary = _download(server, layout)
    assert (summary.fetched, summary.present) == (
        (f"8 classes of {TRAIN}",),
        (f"2 classes of {TRAIN}",),
    )
    _assert_whole(layout, tars)
    assert first.items() < _tars_in(layout).items()
    server.seen.clear()
    assert foresee(layout, only=["train"], part=PART) == ()
    summary = _download(server, layout)
    assert (server.seen, summary.fetched, summary.present) == ([], (), (f"10 classes of {TRAIN}",))


def test_the_command_line_fetches_classes(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """download --classes does the same, and says so."""
    words = ["--classes", "imagenette", "--only", "train", "--no-digest", "--base-url", server.url]
    assert f"fetched 10 classes of {TRAIN}" in command("download", layout.data_dir, *words).stdout
    _assert_whole(layout, tars)


# what goes wrong ----------------------------------------------------------------------------------


def _place(server: FaultServer, wnid: str) -> int:
    """Where the tar of a class begins in the archive that is served."""
    with tarfile.open(server.folder / TRAIN) as tar:
        return next(member.offset_data for member in tar if member.name == f"{wnid}.tar")


@pytest.mark.parametrize(
    "faults", [Faults(ignore_range=True), Faults(ignore_range=True, when=lambda at: at > 0)]
)
def test_a_server_without_ranges_is_refused(
    server: FaultServer, layout: Layout, faults: Faults
) -> None:
    """Who sends whole files only can't send classes:
    that is said, and what to do, and nothing is fetched.
    """
    server.faults = faults
    with pytest.raises(NetworkError, match="did not send the requested part of") as caught:
        _download(server, layout)
    assert "leave out --classes" in caught.value.hint
    assert not layout.class_tars_dir(ARCHIVES["train"]).exists()


def test_a_class_from_a_wrong_place_is_not_believed(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """The same within a class: nothing of it is kept."""
    start = _place(server, min(PART.labels))
    wrong = f"bytes {start + 512}-{start + 511 + len(tars[min(PART.labels)])}/{(server.folder / TRAIN).stat().st_size}"
    server.faults = Faults(content_range=wrong, when=lambda at: at == start)
    with pytest.raises(NetworkError):
        _download(server, layout, connections=1)
    assert list(layout.class_tars_dir(ARCHIVES["train"]).iterdir()) == []
    server.faults = Faults()
    _download(server, layout)
    _assert_whole(layout, tars)


def test_an_archive_that_changes_on_the_way_is_noticed(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """Headers of one version and bytes of another never come together."""
    size = (server.folder / TRAIN).stat().st_size

    class Meanwhile(Silent):
        def note(self, text: str) -> None:
            _write(server.folder / TRAIN, {wnid: tars[wnid] for wnid in reversed(tars)})

    with pytest.raises(NetworkError, match="may have changed while it was read"):
        _download(server, layout, progress=Meanwhile())
    assert (server.folder / TRAIN).stat().st_size == size
    assert not layout.class_tars_dir(ARCHIVES["train"]).exists()


def test_a_class_without_a_validator_is_not_called_different(
    server: FaultServer, layout: Layout
) -> None:
    """The connection breaks, and nothing tells whether the archive has changed: no difference."""
    start = _place(server, min(PART.labels))
    no_validator = {"ETag": None, "Last-Modified": None}
    server.faults = Faults(headers=no_validator, cut=600, when=lambda at: at == start)
    with pytest.raises(NetworkError, match=f"^{TRAIN} from .* can't be resumed") as caught:
        _download(server, layout, connections=1)
    assert "differs" not in caught.value.what
    assert "the server sends neither ETag nor date" in caught.value.detail


def test_another_version_in_the_next_run_starts_over(
    server: FaultServer, layout: Layout, tars: dict[str, bytes], images: list[bytes]
) -> None:
    """What is left of a class of another version of the archive is not put to the new one."""
    first = min(PART.labels)
    start, size = _place(server, first), len(tars[first])
    server.faults = Faults(cut=size // 2, when=lambda at: at == start)
    with pytest.raises(NetworkError):
        _download(server, layout, connections=1, pace=Pace(tries=1))
    server.faults = Faults()
    others = {
        wnid: _class_tar(wnid, images[::-1], 150 if wnid in PART.labels else 2) for wnid in tars
    }
    _write(server.folder / TRAIN, others)
    progress = Silent()
    _download(server, layout, progress=progress)
    _assert_whole(layout, others)
    assert any("starting over" in note for note in progress.notes)


def test_a_class_that_the_archive_lacks_is_named(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """An archive that ends before all classes are found: which one, and nothing is fetched."""
    _write(
        server.folder / TRAIN,
        {wnid: content for wnid, content in tars.items() if wnid != "n03888257"},
    )
    with pytest.raises(InputError, match=r"no n03888257\.tar"):
        _download(server, layout)
    assert not layout.class_tars_dir(ARCHIVES["train"]).exists()


def test_an_archive_of_folders_on_a_server_is_not_to_be_unpacked(
    server: FaultServer, layout: Layout, images: list[bytes]
) -> None:
    """No command here can change it: another server may have the official one."""
    folders = {f"train/n01440764/n01440764_{number}.JPEG": images[number] for number in range(3)}
    (server.folder / TRAIN).write_bytes(pack(folders))
    with pytest.raises(InputError, match="does not belong to this data set") as caught:
        _download(server, layout)
    assert caught.value.hint == "check --base-url: it names the server"


def test_a_class_that_arrives_damaged_is_set_aside(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """A wrong header within a class is found when it has arrived: kept aside, named;
    the others stay.
    """
    second = sorted(PART.labels)[1]
    place = _place(server, second)
    flip(server.folder / TRAIN, place + 148)
    with pytest.raises(InputError, match=rf"{second}\.tar .*corrupt") as caught:
        _download(server, layout)
    assert "the header of a file" in caught.value.detail
    assert list(_tars_in(layout)) == [min(PART.labels)]
    (aside,) = layout.raw_partial_dir.iterdir()
    assert aside.name.startswith(f"{second}.tar.corrupt-")
    flip(server.folder / TRAIN, place + 148)
    _download(server, layout)
    assert _tars_in(layout) == {wnid: tars[wnid] for wnid in PART.labels}


def test_room_is_asked_for_the_classes_alone(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """What must fit is the classes, and not the archive; if it doesn't, nothing is fetched."""
    check = Mock(side_effect=SpaceError("full", "", ""))
    with pytest.raises(SpaceError):
        _download(server, layout, before=check)
    (incoming,) = check.call_args.args
    assert sum(each.to_come for each in incoming) == sum(len(tars[wnid]) for wnid in PART.labels)
    assert not layout.class_tars_dir(ARCHIVES["train"]).exists()


def test_class_tars_become_folders(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """run --extract makes a folder of each class that came,
    and of all classes of the validation archive.
    """
    fetching = DownloadOptions(base_url=server.url, check_digest=False)
    options = ConvertOptions(**SHARDS, recorded=PART, allow_incomplete=True)
    summary = run(layout, ENGINE, fetching=fetching, extract=True, options=options)
    assert summary.untar is not None
    assert {each.split: each.classes for each in summary.untar.splits} == {
        "train": 10,
        "validation": 10,
    }
    folders = {
        path.name: len(existing(path, "*")) for path in existing(layout.images_dir("train"), "*")
    }
    assert folders == dict.fromkeys(PART.labels, 150)


def test_the_whole_archive_has_every_class(
    server: FaultServer, layout: Layout, tmp_path: Path
) -> None:
    """Where the archive itself is there, nothing is fetched for a part of it."""
    layout.own_raw_dir.mkdir(parents=True)
    shutil.copy(tmp_path / "served" / TRAIN, layout.own_raw_dir)
    summary = _download(server, layout)
    assert (server.seen, summary.fetched, summary.present) == ([], (), (TRAIN,))
    assert "train" not in missing_archives(layout, part=PART)


def test_a_header_is_tried_again(
    server: FaultServer, layout: Layout, tars: dict[str, bytes]
) -> None:
    """A server that fails now and then is asked again, header by header."""
    server.faults = Faults(cut=100, times=2, when=lambda at: at > 0)
    _download(server, layout)
    _assert_whole(layout, tars)


FOLDER = "ILSVRC2012_img_train"
OPTIONS = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)


def _unpacked(layout: Layout, folder: str = FOLDER) -> Path:
    """Unpack the outer tar once, as people do."""
    path, archive = layout.raw_dir / folder, layout.archive_path(facts.ARCHIVES["train"])
    write(path, **unpack(archive))
    archive.unlink()
    return path


def _shards(layout: Layout) -> dict[str, bytes]:
    return {name: layout.shard_path(name).read_bytes() for name in layout.find_shards(facts.SPLITS)}


def test_class_tars_make_the_same_shards(tiny_data_dir: Path, tmp_path: Path) -> None:
    """Unpacking the outer tar changes no shard, and a conversion that
    began with it goes on from the class tars.
    """
    layout = Layout(tiny_data_dir, output=tmp_path / "out")
    convert(layout, ENGINE, OPTIONS)
    before = _shards(layout)
    _unpacked(layout, "train")
    assert [split.made for split in convert(layout, ENGINE, OPTIONS).splits] == [0, 0]
    other = Layout(tiny_data_dir, output=tmp_path / "other")
    convert(other, ENGINE, OPTIONS)
    assert _shards(other) == before
    assert "images in 10 class tars" in status(layout).stages[0].detail


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path, _: os.truncate(path, path.stat().st_size // 2), "is damaged at byte"),
        (
            lambda path, other: path.write_bytes(other.read_bytes()),
            "holds a file that does not belong to this data set",
        ),
        (lambda path, _: flip(path, 148), "the header of a file"),
    ],
    ids=["cut", "exchanged", "flipped"],
)
def test_a_damaged_class_is_named(
    damage: Callable[[Path, Path], object], said: str, tiny_data_dir: Path, made_tiny: MadeSet
) -> None:
    """A class tar that is cut, changed, or of another class is refused with its name."""
    layout = Layout(tiny_data_dir)
    folder = _unpacked(layout)
    path, other = (folder / f"{wnid}.tar" for wnid in made_tiny.wnids[:2])
    damage(path, other)
    source = find_source(layout, "train")
    assert source is not None
    with pytest.raises(InputError) as caught:
        source.catalog(ENGINE, Silent())
    assert said in str(caught.value)
    assert path.name in str(caught.value)
