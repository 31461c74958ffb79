"""Archive, a container whose images are slices of its bytes;
walk, which lists a tar; list_tars, for zips too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Generic, Protocol

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine, command_line
from imagenet_prep.hints import Hint
from imagenet_prep.model import Engine, Failed, R, T
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.names import file_name
from imagenet_prep.sources.obstacles import Collecting, collected
from imagenet_prep.sources.remarks import fault_of_name, refuse_twice
from imagenet_prep.sources.skipped import HIDDEN_FILES, SYSTEM_FILES, Skipped, is_system_file
from imagenet_prep.sources.slices import Buffer, Container, FileSlices, Row, slices_of
from imagenet_prep.sources.tar_members import (
    BLOCK,
    WHOLE_COPY,
    Member,
    Sliceable,
    TarFault,
    iter_members,
)
from imagenet_prep.sources.zips import Zip, walk_zip, with_slashes
from imagenet_prep.storage.files import view_of
from imagenet_prep.storage.location import AnyPath, local_or_none, split
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import RangedView, changed
from imagenet_prep.text import is_web_page

_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "Zstandard"}
_DECOMPRESSORS = {"gzip": "gzip", "bzip2": "bzip2", "xz": "xz", "Zstandard": "zstd"}
_SUFFIXES = {"gzip": "gz", "bzip2": "bz2", "xz": "xz", "Zstandard": "zst"}
ZIP = ".zip"
_MAGIC = 5  # bytes that tell a compression


class Archive(Container, frozen=True):
    """A file with images at offsets: a tar, tars within it, or a bundle."""

    is_sliced: ClassVar[bool] = True
    is_consumable: ClassVar[bool] = True

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows: slices of the archive's map, never copied;
        ranges of an object.
        """
        if local_or_none(self.path) is None:
            return lambda row: self.read_all([row])[0]
        archive = view_of(self.path)

        def read(row: Row) -> Buffer:
            _, offset, length, _ = row
            content = archive[offset : offset + length]
            return content if len(content) == length else _whole(content, self.path, row)

        return read

    def read_all(self, rows: Sequence[Row]) -> list[Buffer]:
        """The bytes of several rows, requested together."""
        store, name = split(self.path)
        ranges = [(row.offset, row.offset + row.length) for row in rows]
        try:
            contents = store.read_ranges(name, ranges)
        except FileNotFoundError as error:
            raise unreadable(self.path, error) from error
        pairs = zip(contents, rows, strict=True)
        return [_whole(content, self.path, row) for content, row in pairs]


def _whole(content: memoryview, path: AnyPath, row: Row) -> memoryview:
    if len(content) != row.length:
        raise changed(path, row.offset, row.length, len(content))
    return content


class NamedSlices(Sliceable, Protocol):
    """An archive to walk, and its name for messages."""

    @property
    def path(self) -> object:
        """Its path, for messages."""
        ...


def walk(
    view: NamedSlices, start: int = 0, stop: int | None = None, *, inside: str = "", hint: str
) -> Iterator[Member]:
    """List name, offset in the archive and length of each file in its tar from ``start`` to
    ``stop``.

    Names are without a leading "./".

    Raises:
        InputError: it is compressed, or damaged: the error has the archive, the tar ``inside`` it
            and the byte; ``hint``: the remedy.
    """
    try:
        for name, offset, length in iter_members(view, start, len(view) if stop is None else stop):
            yield (_without_dot(name) if name.startswith(b"./") else name), offset, length
    except TarFault as fault:
        refuse_compressed(view.path, bytes(view[start : start + _MAGIC]), inside)
        if not start and is_web_page(bytes(view[0:BLOCK])):
            what = f"{view.path} is a web page, not an archive"
            raise InputError(what, "expected a tar, got HTML or XML", hint) from fault
        archive = f"{view.path} ({inside})" if inside else str(view.path)
        raise InputError(
            f"{archive} is damaged at byte {fault.offset:,}", fault.reason, hint
        ) from fault


def _without_dot(name: bytes) -> bytes:
    while name.startswith(b"./"):
        name = name[2:]
    return name


def list_tars(
    archives: Sequence[AnyPath],
    engine: Engine,
    *,
    folder_each: bool,
    skipped: Skipped | None = None,
) -> Catalog:
    """List the files in all ``archives``, including those in tars within them; ``skipped`` counts
    hidden ones.

    Archives are tars, or zips by their names, whose entries are read in place too.

    A tar within an archive becomes a folder of its name, as in ImageNet-21k's ``fall11_whole.tar``,
    a tar of tars. It is read in place; a tar within that one is a file. With ``folder_each``, every
    archive becomes a folder too.

    Raises:
        InputError: an archive is damaged or compressed, a name leads out of it, or repeats.
    """
    tars = []
    for archive in archives:
        folder = folder_of_tar(file_name(archive)) if folder_each else ""
        tars.append(_Tar(archive, folder))
    tars.sort(key=_in_path_order)
    parts = _list_levels(tars, engine, Skipped() if skipped is None else skipped)
    return refuse_twice(Catalog.join(parts))


def folder_of_tar(name: str) -> str:
    """The folder for a tar or a zip, such as ``cats/`` for ``cats.tar``."""
    stem = name[: -len(ZIP)] if is_zip(name) else name.removesuffix(".tar")
    return f"{stem}/"


def is_zip(name: str) -> bool:
    """Whether an archive is a zip, by its name."""
    return name.lower().endswith(ZIP)


def noun_of(names: Iterable[str]) -> str:
    """The word for archives of these names: tar, zip, or archive for both."""
    nouns = {"zip" if is_zip(name) else "tar" for name in names}
    return "archive" if len(nouns) > 1 else next(iter(nouns), "tar")


class _Tar(Struct, frozen=True):
    """A tar: its archive, the folder for its files, and,
    within an archive, its name and byte range.
    """

    archive: AnyPath
    folder: str
    inside: str = ""
    start: int = 0
    stop: int | None = None


def _in_path_order(tar: _Tar) -> tuple[bytes, str]:
    return tar.folder.encode("utf-8", "surrogateescape"), str(tar.archive)


class _Listed(Struct, frozen=True):
    """The files in a tar, sorted, the tars in it, and its hidden files."""

    files: Catalog
    inner: Sequence[_Tar]
    skipped: Skipped


def _list_levels(tars: Sequence[_Tar], engine: Engine, skipped: Skipped) -> Iterator[Catalog]:
    """The files in each archive, then those in each tar within them."""
    inner: list[_Tar] = []
    for listed in in_order(engine, _list_tar, tars):
        inner += listed.inner
        skipped.update(listed.skipped)
        yield listed.files
    inner.sort(key=_in_path_order)
    step = max(1, len(inner) // (16 * engine.workers))  # a small tar takes less time than a task
    groups = (inner[start : start + step] for start in range(0, len(inner), step))
    for group in in_order(engine, _list_inner, groups):
        for listed in group:
            skipped.update(listed.skipped)
            yield listed.files


def _list_inner(tars: Sequence[_Tar]) -> list[_Listed]:
    return list(map(_list_tar, tars))


def _list_tar(tar: _Tar) -> _Listed:
    is_zipped = is_zip(file_name(tar.archive))
    files = CatalogBuilder(Zip(tar.archive) if is_zipped else Archive(tar.archive))
    inner, skipped = list[_Tar](), Skipped()
    with slices_of(tar.archive) as view:
        stamp = view.modified
        for raw, offset, length in _members(tar, view):
            name = _checked(_words(tar), raw, offset)
            path = tar.folder + name
            if is_system_file(raw):
                skipped.add(SYSTEM_FILES, path)
                continue
            if any(part.startswith(".") for part in name.split("/")):
                skipped.add(HIDDEN_FILES, path)
                continue
            if fault := fault_of_name(path, tar.archive):
                raise fault
            if name.endswith(".tar") and not tar.inside and not is_zipped:
                folder = tar.folder + folder_of_tar(name)
                inner.append(_Tar(tar.archive, folder, name, offset, offset + length))
            else:
                files.append(path, offset, length, stamp)
    return _Listed(files.sorted(), inner, skipped)


def _members(tar: _Tar, view: FileSlices | RangedView) -> Iterator[Member]:
    """Name, place and length of each file in a tar or a zip."""
    if not is_zip(file_name(tar.archive)):
        yield from walk(view, tar.start, tar.stop, inside=tar.inside, hint=WHOLE_COPY)
        return
    if not isinstance(view, FileSlices):
        what = f"{tar.archive} is a zip in an object store"
        raise InputError(what, "expected a local zip, or a tar", "copy it to a local disk")
    for name, place, length in walk_zip(view):
        yield _without_dot(with_slashes(name)), place, length


def _words(tar: _Tar) -> str:
    return f"{tar.archive} ({tar.inside})" if tar.inside else str(tar.archive)


def refuse_compressed(archive: object, start: bytes, inside: str = "") -> None:
    """Raise InputError with the command that helps if a tar, by its first bytes, is compressed.

    ``inside`` is its name if it is a member of ``archive``.
    """
    compression = compression_of(start)
    if not compression:
        return
    path = str(archive)
    target = path
    for suffix in (".gz", ".bz2", ".xz", ".zst"):
        target = target.removesuffix(suffix)
    if target.endswith(".tgz"):
        target = f"{target.removesuffix('.tgz')}.tar"
    if inside:
        archive_name = f"{path} ({inside})"
        decompressor = _DECOMPRESSORS[compression]
        hint = f"unpack {path}, and decompress the tars in it with {decompressor} -d"
    else:
        archive_name = path
        next_step = f"then name {target}" if target != path else "then run the same command again"
        hint = Hint(decompress_command(path, target, compression), f"    ({next_step})")
    raise InputError(
        f"{archive_name} is compressed with {compression}",
        "expected a plain tar, whose files are read in place",
        hint,
    )


def compression_of(start: bytes) -> str:
    """The name of the compression of a file with these first bytes;
    "" if it has none that is known.
    """
    return next((name for magic, name in _COMPRESSED.items() if start.startswith(magic)), "")


def decompress_command(source: str, target: str, compression: str) -> CommandLine:
    """The command that writes ``target``, a plain tar;
    the compressed file is kept, perhaps under another name.
    """
    packed = source if source != target else f"{source}.{_SUFFIXES[compression]}"
    decompress = command_line([_DECOMPRESSORS[compression], "-dc", "--", packed])
    unpack = decompress.into(target)
    if packed == source:
        return unpack
    return command_line(["mv", "--", source, packed]).then(unpack)


def _checked(archive: str, raw: bytes, offset: int) -> str:
    """The name of a member as text; raises InputError if it leads out of its archive."""
    name = raw.decode("utf-8", "surrogateescape")
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(name.split("/")):
        got = raw[:100].decode("utf-8", "backslashreplace")
        raise InputError(
            f"{archive} holds a member whose name leads out of it, at byte {offset - BLOCK:,}",
            f"expected a path within the archive, got {got!r}",
            "check where it comes from",
        )
    return name


def in_order(engine: Engine, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Yield the result of ``function`` for each task in order; raise the first failure. Early
    results are held.

    Where obstacles are collected, those of every task are, and a task that fails has no result.
    """
    obstacles = collected()
    if obstacles is not None:
        for result, task_obstacles in _in_order(engine, Collecting(function), tasks):
            obstacles.extend(task_obstacles)
            if result is not None:
                yield result
        return
    yield from _in_order(engine, function, tasks)


def _in_order(engine: Engine, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    early: dict[int, R] = {}
    next_number = 0
    for outcome in engine.map(_Numbered(function), enumerate(tasks)):
        if isinstance(outcome, Failed):
            raise outcome.error
        number, _ = outcome.task
        early[number] = outcome.value
        while next_number in early:
            yield early.pop(next_number)
            next_number += 1


class _Numbered(Struct, Generic[T, R], frozen=True):
    """Calls a function with the task of a number; picklable if the function is."""

    function: Callable[[T], R]

    def __call__(self, task: tuple[int, T]) -> R:
        return self.function(task[1])
