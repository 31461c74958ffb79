"""Inspection: one walk through a folder finds images by content, archives,
labels files, annotations, the rest.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.images import format_of, is_npy
from imagenet_prep.model import Engine
from imagenet_prep.recipes.asked import InitOptions
from imagenet_prep.recipes.columns import ENDINGS, Content, is_odd, is_of
from imagenet_prep.recipes.formats import Format, all_formats
from imagenet_prep.recipes.labels_search import (
    LabelsFile,
    LabelsRefusal,
    join_by_split,
    judge_labels,
    last_names,
    mentions,
    mentions_half,
)
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.recipes.source_kinds import kinds_with_samples
from imagenet_prep.recipes.splits import counted, grouped, stem_of, suffix_of
from imagenet_prep.recipes.table_forms import Sought
from imagenet_prep.sources.array_files import may_hold_arrays
from imagenet_prep.sources.catalog import Catalog, Remarks, missing_shards
from imagenet_prep.sources.folders import HIDDEN, list_folder
from imagenet_prep.sources.lmdb_pages import MAGIC as LMDB
from imagenet_prep.sources.names import below
from imagenet_prep.sources.tars import is_zip, list_tars
from imagenet_prep.text import listed
from imagenet_prep.tfrecord.framing import FramingError, parse_header

_WITH_COLUMNS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson")
"""Endings of files in which images may be named without their endings:
other texts hold such words by chance.
"""

TABLES = (*_WITH_COLUMNS, ".txt", ".lst", ".list")
"""Endings of files that may be labels files; a file without an ending may be one, too."""

DATA = (
    *(".json", ".xml", ".yaml", ".yml", ".mat", ".pkl", ".pickle", ".h5", ".hdf5", ".cls", *TABLES),
    *(".xlsx", ".xls", ".ods", ".db", ".sqlite", ".sqlite3"),
)
"""Endings of files that may hold labels or annotations."""

PACKED = (
    *(
        ".tar.gz",
        ".tgz",
        ".tar.bz2",
        ".tar.xz",
        ".gz",
        ".bz2",
        ".xz",
        ".zst",
        ".zip",
        ".7z",
        ".rar",
        ".parquet",
    ),
    *(".arrow", ".feather", ".tfrecord", ".tfrecords", ".lmdb", ".mdb", ".rec", ".beton"),
)
"""Endings of files that may hold images, and that no layout reads."""

_LOCK = "lock.mdb"
"""A file that LMDB writes next to a database; it has no data."""

_OTHER: dict[Content, Content] = {"image": "array", "pixels": "array", "array": "image"}
_LARGEST = 1 << 28
MOST_READ = 50
"""How many files of one ending are read."""

_LARGEST_JSON = 1 << 26
_TAIL = 1 << 12


class Inspection(Struct, frozen=True):
    """The content of a folder.

    Args:
        folder: where it is.
        listing: its files.
        content: what most of them are; None if there are neither images nor arrays outside of tars.
        items: the files of this content.
        archives: the tars, and what each holds.
        holders: the files that may hold many images, by the source that reads them: parquet,
        tfrecord or arrays. labels: the labels files that name at least half of the items.
        partial: those that name some.
        refusals: those that name at least half of them, and can't be taken.
        annotations: the files of each tool that is known.
        others: the files that are none of these, by their reasons for being left out.
        remarks: the listing's notes, without its rows.
        faults: what keeps any layout from being taken.
        engine: lists what is in files.
        asked: what the user says of the folder.
        members: the images in the tars, by their names there, where there are none outside of them.
    """

    folder: Path
    listing: Catalog
    content: Content | None
    items: Sequence[str]
    archives: Mapping[str, Catalog]
    holders: Mapping[str, Sequence[str]]
    labels: Sequence[LabelsFile]
    partial: Sequence[LabelsFile]
    refusals: Sequence[LabelsRefusal]
    annotations: Mapping[str, Sequence[str]]
    others: Mapping[str, Sequence[str]]
    remarks: Remarks
    faults: Sequence[InputError]
    engine: Engine
    asked: InitOptions = InitOptions()
    members: Sequence[str] = ()

    @property
    def noun(self) -> str:
        """The word for one of its items."""
        return "array" if self.content == "array" else "image"


def inspect_folder(folder: Path, engine: Engine, asked: InitOptions | None = None) -> Inspection:
    """Look at every file of a folder once; raises InputError if a tar in
    it is damaged or compressed.
    """
    asked = asked or InitOptions()
    listing, remarks = list_folder(folder, engine)
    names = list(listing.names)
    tars = [name for name in names if name.lower().endswith(".tar")]
    kinds = kinds_by_content(folder, names)
    of_samples = kinds_with_samples()
    known = {name: kind for name, kind in kinds.items() if kind not in of_samples}
    content = main_content(names) or next(
        ("array" if kind == "NumPy" else "image" for kind in known.values()), None
    )
    fit = {name for name, kind in known.items() if fits(content, kind)}
    items = [name for name in names if content and (is_of(content, name) or name in fit)]
    archives = {name: list_tars([below(folder, name)], engine, folder_each=False) for name in tars}
    archives |= {} if items else _zips_of_images(folder, names, engine)
    members = [] if items else _members(archives)
    taken = {*items, *archives, *known}
    rest = [name for name in names if name not in taken and not is_odd("image", name)]
    sizes = dict(zip(names, listing.lengths.tolist(), strict=True))
    rest += (hidden := _take_hidden(folder, remarks, last_names(items)) if items else {})
    held = kinds.keys() - known.keys()  # they may be large, and are no texts
    texts = [name for name in rest if name not in held]
    judged = (
        _judge(folder, texts, items or members, sizes | hidden, asked) if items or members else {}
    )
    rest = [name for name in rest if judged.get(name) is None]
    names_of_tables = [
        name for name, table in judged.items() if table is not None and not name.startswith("../")
    ]
    annotations = _annotations(folder, rest, names_of_tables, items)
    noted = {
        *(strange := strange_among(rest, content)),
        *(name for found in annotations.values() for name in found),
    }
    left = {name: (sizes | hidden)[name] for name in rest if name not in noted}
    others = _others(folder, left, last_names(items), held)
    faults = [
        *remarks.obstacles,
        *missing_shards([*tars, *(name for name in kinds if name not in known)]),
    ]
    faults += wrong_formats(folder, names, content)
    faults += _unreadable(
        folder, [f"{name} ({kind})" for name, kind in known.items() if name not in fit]
    )
    judged = _alike(folder, judged, items or members, asked)
    tables = [found for found in judged.values() if isinstance(found, LabelsFile)]
    refusals = [found for found in judged.values() if isinstance(found, LabelsRefusal)]
    lists_of_splits = {place.removeprefix("./") for place in asked.splits.values()}
    joined = join_by_split(folder, tables, items or members)
    parts = {name for table in joined for name in table.places}
    tables = [*joined, *(table for table in tables if table.where not in parts)]
    return Inspection(
        folder=folder,
        listing=listing,
        content=content,
        items=items,
        archives=archives,
        holders={
            each: [name for name, kind in kinds.items() if kind == each]
            for each in {*kinds.values()}
        },
        labels=[table for table in tables if table.is_most],
        partial=[table for table in tables if not table.is_most],
        refusals=[refusal for refusal in refusals if refusal.where not in lists_of_splits],
        annotations=annotations,
        others={"strange": strange, **others},
        remarks=remarks,
        faults=faults,
        engine=engine,
        asked=asked,
        members=members,
    )


def _zips_of_images(folder: Path, names: Iterable[str], engine: Engine) -> dict[str, Catalog]:
    """The zips that hold images, and what is in them;
    a damaged one, or one of other files, has to be unpacked.
    """
    found: dict[str, Catalog] = {}
    for name in (name for name in names if is_zip(name)):
        with contextlib.suppress(InputError):
            listing = list_tars([below(folder, name)], engine, folder_each=False)
            if main_content(listing.names) is not None:
                found[name] = listing
    return found


def _members(archives: Mapping[str, Catalog]) -> list[str]:
    """The images or arrays in all tars."""
    names = [name for listing in archives.values() for name in listing.names]
    content = main_content(names)
    return [name for name in names if content and is_of(content, name)]


def main_content(names: Iterable[str]) -> Content | None:
    """The content of most files; TIFFs alone are read as numbers, which loses nothing of them."""
    found = Counter(
        name.rpartition(".")[2].lower()
        for name in names
        if is_of("image", name) or is_of("array", name)
    )
    arrays, tiffs = found["npy"] + found["npz"], found["tif"] + found["tiff"]
    if not found or arrays > found.total() - arrays:
        return "array" if found else None
    return "pixels" if tiffs == found.total() - arrays else "image"


# images that the names hide -----------------------------------------------------------------------


def wrong_formats(where: object, names: Iterable[str], content: Content | None) -> list[InputError]:
    """The faults of images whose formats can't be read."""
    odd = [name for name in names if content and is_odd(content, name)]
    if not odd:
        return []
    what = f"{where} holds images that can't be read: {counted(odd)}: {listed(odd)}"
    return [
        InputError(
            what, f"expected {', '.join(FORMATS)}", "convert them to PNG or JPEG, or move them away"
        )
    ]


def strange_among(names: Iterable[str], content: Content | None) -> list[str]:
    """The arrays among images, or the images among arrays."""
    return [
        name
        for name in names
        if content and not is_of(content, name) and is_of(_OTHER[content], name)
    ]


def strange(where: object, names: Sequence[str], content: Content | None, fit: int) -> InputError:
    """The fault of arrays among images, or of images among arrays."""
    what = (
        f"{where} holds {counted(names)} next to {fit:,} "
        f"{'arrays' if content == 'array' else 'images'}"
    )
    hint = (
        "move one kind to another folder; or write a recipe that names one: source: {files: "
        "'FOLDER/**/*.jpg'}"
    )
    return InputError(
        f"{what}: {listed(names)}", "expected images or arrays: records hold one of them", hint
    )


def _unreadable(where: object, names: Sequence[str]) -> list[InputError]:
    if not names:
        return []
    what = (
        f"{where} holds images that can't be read with the others: "
        f"{listed(names)} ({len(names):,} in all)"
    )
    return [
        InputError(
            what,
            f"expected {', '.join(FORMATS)}, or arrays alone",
            "convert them, or move them away",
        )
    ]


def kinds_by_content(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The kinds of files whose names don't tell, by content:
    the format of an image, "NumPy", or a kind with samples.
    """
    endings = (*ENDINGS["image"], *ENDINGS["array"], ".tar")
    unknown = (
        name for name in names if not name.lower().endswith(endings) and not is_odd("image", name)
    )
    return {name: kind for name in unknown if (kind := _kind(below(folder, name)))}


def fits(content: Content | None, kind: str) -> bool:
    """Whether a file of this kind can be read as others of a content are."""
    known = {"image": FORMATS, "pixels": ("JPEG", "PNG", "TIFF"), "array": ("NumPy",)}
    return content is not None and kind in known[content]


def _kind(path: Path) -> str:
    """The format of an image by its first bytes, or the source that reads such files;
    "" for another file.
    """
    head = _head(path, 32)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head[16:20] == LMDB and path.name.endswith((".mdb", ".lmdb")):
        return "lmdb"
    for ending in ("arrow", "mds"):
        if path.name.lower().endswith(f".{ending}"):
            return ending
    with contextlib.suppress(FramingError):
        parse_header(head[:12], 0, 0)
        return "tfrecord"
    return (
        "arrays"
        if may_hold_arrays(path.name, head)
        else "NumPy"
        if is_npy(head)
        else format_of(head)
    )


def _head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file; none if it can't be read."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(size)
    return b""


# labels and annotations ---------------------------------------------------------------------------


def _judge(
    folder: Path,
    rest: Sequence[str],
    items: Sequence[str],
    sizes: Mapping[str, int],
    asked: InitOptions,
) -> dict[str, LabelsFile | LabelsRefusal | None]:
    """The files that may be labels files, in the folder or next to it, each as one."""
    sought = Sought(folder, items, last_names(items), asked)
    known = sought.known
    candidates = [name for name in _candidates(rest) if sizes[name] <= _LARGEST] + _beside(
        folder, items, known
    )
    candidates += [name for name in _documents(folder, rest) if sizes[name] <= _LARGEST_JSON]
    found = {name: judge_labels(sought, name) for name in candidates}
    tables: list[str] = []
    if not any(found.values()):
        stems = replace(sought, known=last_names(map(without_ending, items)))
        tables = [name for name in candidates if suffix_of(name) in (*_WITH_COLUMNS, ".json")]
        found |= {
            name: judge_labels(stems, name, needs_header=True) for name in tables
        }  # others may be of classes
    if not any(found.values()):
        cut = replace(stems, is_cut=True)
        others = {name: judge_labels(cut, name) for name in tables}
        found |= {
            name: table
            for name, table in others.items()
            if isinstance(table, LabelsFile) and table.is_most
        }
    if not any(found.values()):
        folders = replace(
            sought, known=last_names(name.rpartition("/")[0] for name in items) - {""}
        )
        with_columns = [name for name in tables if suffix_of(name) in _WITH_COLUMNS]
        others = {name: judge_labels(folders, name) for name in with_columns}
        found |= {name: table for name, table in others.items() if _labels_folders(table)}
    if not any(found.values()):
        texts = [name for name in candidates if suffix_of(name) not in (*_WITH_COLUMNS, ".json")]
        others = {name: judge_labels(stems, name) for name in texts}
        found |= {name: table for name, table in others.items() if _has_columns(table)}
    return found


def _has_columns(table: LabelsFile | LabelsRefusal | None) -> bool:
    """Whether a text has columns of classes, as the list of Oxford's pets:
    words alone name files by chance.
    """
    if not isinstance(table, LabelsFile) or table.options.get("format") != "spaces":
        return False
    return bool(table.candidates) or table.has_labels


def _labels_folders(table: LabelsFile | LabelsRefusal | None) -> bool:
    """Whether a table of folders gives several one class; otherwise it has the names of classes."""
    if not isinstance(table, LabelsFile) or not table.labels:
        return isinstance(table, LabelsFile) and bool(table.candidates)
    return len(set(map(str, table.labels))) < len(set(table.table.lines))


def _alike(
    folder: Path,
    judged: Mapping[str, LabelsFile | LabelsRefusal | None],
    items: Sequence[str],
    asked: InitOptions,
) -> dict[str, LabelsFile | LabelsRefusal | None]:
    """The tables, of which small ones have the labels of the largest in
    the columns that it has them in.
    """
    tables = [table for table in judged.values() if isinstance(table, LabelsFile) and table.label]
    largest = max(tables, key=lambda table: len(table.rows), default=None)
    found = dict(judged)
    if largest is None or asked.label is not None:
        return found
    known = last_names(items).union(last_names(map(without_ending, items)))
    sought = Sought(folder, items, known, replace(asked, label=largest.label))
    for name, table in judged.items():
        if (
            isinstance(table, LabelsFile)
            and not table.label
            and largest.label in table.table.columns
        ):
            found[name] = judge_labels(sought, name)
    return found


def _candidates(names: Sequence[str]) -> list[str]:
    """The files that may be labels files: of each ending the first 50,
    those near the folder before the others.
    """
    several = grouped(names, ending_of).items()
    usual = (found for suffix, found in several if suffix in TABLES or not suffix)
    return [name for found in usual for name in sorted(found, key=_depth)[:MOST_READ]]


def _depth(name: str) -> int:
    return name.count("/")


def _documents(folder: Path, names: Sequence[str]) -> list[str]:
    """The JSON documents that no known tool wrote: of many the first 50."""
    several = sorted((name for name in names if name.lower().endswith(".json")), key=_depth)[
        :MOST_READ
    ]
    return [name for name in several if _format_of(folder, name, ".json") is None]


def ending_of(name: str) -> str:
    """The ending of a file's name; "" for all names without one, which are one group."""
    suffix = suffix_of(name)
    return suffix if suffix.startswith(".") else ""


def _take_hidden(folder: Path, remarks: Remarks, known: frozenset[str]) -> dict[str, int]:
    """The hidden files that name at least half of the images, with their sizes;
    they are no longer skipped.
    """
    found, read = {}, Counter[str]()
    for name in list(remarks.passed.get(HIDDEN, ())):
        path = below(folder, name)
        read[path.suffix] += 1  # there may be one next to each image
        if (
            read[path.suffix] > MOST_READ
            or not path.is_file()
            or (size := path.stat().st_size) > _LARGEST
        ):
            continue
        if _is_text(path) and mentions_half(path, known):
            found[name] = size
            remarks.passed[HIDDEN].remove(name)
    return found


def _beside(folder: Path, items: Sequence[str], known: frozenset[str]) -> list[str]:
    """Labels files next to a folder: their first lines contain its name,
    or they name half of its images without it.
    """
    home = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay, as in names
    within = known.union(map(str.lower, items))
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(name for name in os.listdir(home.parent) if name.lower().endswith(TABLES))
    names.sort(key=lambda name: stem_of(name) != home.name)
    return [
        f"../{name}"
        for name in _candidates(names)
        if _is_about(home, home.parent / name, within, known)
    ]


def _is_about(home: Path, path: Path, within: frozenset[str], known: frozenset[str]) -> bool:
    """Whether a file next to a folder is about its images,
    and not about those of another folder.
    """
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return False
    head = _head(path, 1 << 20)
    is_another = path.stem != home.name and path.with_suffix("").is_dir()
    bare = not is_another and mentions(head, within) and mentions_half(path, known)
    return bare or f"{home.name}/".encode() in head[:4096]


def _annotations(
    folder: Path, names: Sequence[str], tables: Iterable[str], items: Sequence[str]
) -> dict[str, list[str]]:
    """The files that annotate images, by the tool that wrote them or by what shows it.

    ``tables`` may be labels files, too: a CSV with a box for each image is both.
    """
    stems = {stem_of(name) for name in items}
    found: dict[str, list[str]] = {}
    for suffix, several in grouped(names, ending_of).items():
        paired = [name for name in several if stem_of(name) in stems]
        by_tool = _by_tool(folder, several, suffix, set(paired))
        for tool, files in by_tool.items():
            found.setdefault(tool, []).extend(files)
        if not by_tool and suffix in DATA and items and 2 * len(paired) >= len(stems) > 1:
            found.setdefault(f"{suffix} files of the same names as images, maybe", []).extend(
                paired
            )
    for name in tables:
        format = _format_of(folder, name, ending_of(name))
        if format is not None and not format.per_image:
            found.setdefault(format.tool, []).append(name)
    return found


def _by_tool(
    folder: Path, names: Sequence[str], suffix: str, paired: Collection[str]
) -> dict[str, list[str]]:
    """The files of one ending by the tool that wrote them; the first 50 tell, if each image has a
    file.

    ``paired`` are those that have the names of images: an empty one may be that of an image without
    objects.
    """
    known = {name: _format_of(folder, name, suffix) for name in names[:MOST_READ]}
    formats = {format.key: format for format in known.values() if format is not None}
    found: dict[str, list[str]] = {}
    for format in formats.values():
        if not format.per_image:
            found[format.tool] = [name for name, other in known.items() if other is format]
        elif paired or not format.is_vague:
            fitting = {
                name
                for name, other in known.items()
                if other is format or (other is None and name in paired)
            }
            found[format.tool] = [name for name in names if name in fitting or name not in known]
    return found


def _format_of(folder: Path, name: str, suffix: str) -> Format | None:
    """The format of annotations that a file is of; None for another file."""
    formats = [format for format in all_formats().values() if suffix in format.endings]
    ends = _ends(below(folder, name)) if formats else b""
    return next((format for format in formats if format.is_of(name, ends)), None)


def _ends(path: Path) -> bytes:
    """The first and the last bytes of a file."""
    head = _head(path)
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(len(head), path.stat().st_size - _TAIL))
        head += file.read(_TAIL)
    return head


def _others(
    folder: Path, sizes: Mapping[str, int], known: frozenset[str], held: Collection[str]
) -> dict[str, list[str]]:
    """The files that nothing is made of, by what they seem to be;
    files that hold images are not read.
    """
    found: dict[str, list[str]] = {}
    read: Counter[str] = Counter()
    for name, size in sizes.items():
        suffix = ending_of(name)
        if name.lower().endswith(PACKED) and not name.endswith(_LOCK):
            found.setdefault("packed", []).append(name)
            continue
        is_data = suffix in DATA or not suffix
        is_read = name not in held and read[suffix] < MOST_READ and size <= _LARGEST
        is_read = is_read and (is_data or _is_text(below(folder, name)))
        read[suffix] += is_read
        if is_read and mentions_half(below(folder, name), known):
            found.setdefault("names images" if is_data else "text names images", []).append(name)
        else:
            found.setdefault("data" if is_data and suffix in DATA else "other", []).append(name)
    return found


def _is_text(path: Path) -> bool:
    """Whether a file starts like a text: without a zero byte, unless it is UTF-16."""
    head = _head(path)
    return b"\0" not in head or head[:2] in (b"\xff\xfe", b"\xfe\xff")
