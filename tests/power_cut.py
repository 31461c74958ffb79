"""What a disk may hold after a power cut: operations -> after each of them, the worst trees of
files that may be left.

The model is the one that POSIX promises, and no file system's own kindness: an fsync of a file
makes its bytes durable, not its name; an fsync of a folder makes the names in it durable; a sync of
the file system both. Whatever was not synced may be there or not, each part of it by itself. Only
of a file that is moved from one folder to another it takes for granted that it is not lost between
the two.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Union

from command_server import CommandServer
from syscalls import Operation, environment, record

Tree = dict[str, Union["Tree", "Content"]]
"""What a folder holds by name: folders, and the content of files."""


class Content(NamedTuple):
    """The bytes of a file, and the times of one that was there before the first operation."""

    data: bytes
    times: tuple[int, int] | None = None


EMPTY = Content(b"")


@dataclass(eq=False)
class File:
    """A file: as processes see it, and as the last sync left it on the disk."""

    now: Content = EMPTY
    durable: Content = EMPTY
    version: int = 0
    durable_version: int = 0

    def change(self, data: bytes) -> None:
        """Give it other content, not synced."""
        self.now = Content(data)
        self.version += 1


@dataclass(eq=False)
class Folder:
    """A folder: the names in it as processes see them,
    and as the last sync left them on the disk.
    """

    now: dict[str, File | Folder] = field(default_factory=dict)
    durable: dict[str, File | Folder] = field(default_factory=dict)
    version: int = 0
    durable_version: int = 0


class Disk:
    """A folder on a disk with a cache: operations go in,
    the trees that a power cut may leave come out.
    """

    def __init__(self, folder: Path) -> None:
        self.root = _load(folder)
        self._begun: dict[int, list[tuple[File | Folder, object, int]]] = {}
        self._moves: list[
            tuple[File | Folder, Folder, Folder, str]
        ] = []  # what, from where, to where, its name there

    def apply(self, operation: Operation) -> None:
        """Do what a process did.

        Raises:
            KeyError: it concerns what isn't there: the recording is not whole.
        """
        getattr(self, f"_{operation.kind}")(operation)

    def _open(self, operation: Operation) -> None:
        folder, name = self._place(operation.path)
        if name not in folder.now:
            if "creat" in operation.flags:
                self._enter(folder, name, File())
        elif "trunc" in operation.flags and self._file(operation.path).now.data:
            self._file(operation.path).change(b"")

    def _write(self, operation: Operation) -> None:
        file = self._file(operation.path)
        old = file.now.data
        offset = len(old) if operation.offset < 0 else operation.offset
        file.change(
            old[:offset].ljust(offset, b"\0") + operation.data + old[offset + len(operation.data) :]
        )

    def _truncate(self, operation: Operation) -> None:
        file = self._file(operation.path)
        if len(file.now.data) != operation.size:
            file.change(file.now.data[: operation.size].ljust(operation.size, b"\0"))

    def _punch(self, operation: Operation) -> None:
        """A hole: at once on the disk, which is the worst that may be."""
        file = self._file(operation.path)
        is_durable = file.now is file.durable
        file.change(_with_hole(file.now.data, operation))
        file.durable = file.now if is_durable else Content(_with_hole(file.durable.data, operation))

    def _sync(self, operation: Operation) -> None:
        nodes = list(self._nodes()) if operation.path is None else [self._node(operation.path)]
        self._begun[operation.call] = [
            (node, node.now if isinstance(node, File) else dict(node.now), node.version)
            for node in nodes
        ]

    def _synced(self, operation: Operation) -> None:
        for node, then, version in self._begun.pop(operation.call):
            if version >= node.durable_version:  # a later sync may have ended before
                node.durable, node.durable_version = then, version  # type: ignore[assignment]
                for (
                    moved,
                    source,
                    target,
                    name,
                ) in self._moves:  # gone here for good: then there for good
                    if (
                        source is node
                        and moved not in node.durable.values()
                        and target.now.get(name) is moved
                    ):
                        target.durable[name] = moved

    def _rename(self, operation: Operation) -> None:
        node = self._node(operation.path)
        (source, old), (target, new) = self._place(operation.path), self._place(operation.to)
        self._leave(source, old)
        self._enter(target, new, node)
        if source is not target:
            self._moves.append((node, source, target, new))

    def _link(self, operation: Operation) -> None:
        self._enter(*self._place(operation.to), self._node(operation.path))

    def _unlink(self, operation: Operation) -> None:
        self._leave(*self._place(operation.path))

    _rmdir = _unlink

    def _mkdir(self, operation: Operation) -> None:
        self._enter(*self._place(operation.path), Folder())

    @staticmethod
    def _enter(folder: Folder, name: str, node: File | Folder) -> None:
        folder.now[name] = node
        folder.version += 1

    @staticmethod
    def _leave(folder: Folder, name: str) -> None:
        del folder.now[name]
        folder.version += 1

    def _place(self, path: str | None) -> tuple[Folder, str]:
        parent, _, name = str(path).rpartition("/")
        folder = self._node(parent)
        assert isinstance(folder, Folder)
        return folder, name

    def _node(self, path: str | None) -> File | Folder:
        node: File | Folder = self.root
        for name in filter(None, str(path).split("/")):
            assert isinstance(node, Folder)
            node = node.now[name]
        return node

    def _file(self, path: str | None) -> File:
        node = self._node(path)
        assert isinstance(node, File)
        return node

    def _nodes(self) -> Iterator[File | Folder]:
        """Everything that can be reached, by the names of now or by those on the disk."""
        found: dict[int, File | Folder] = {}
        waiting: list[File | Folder] = [self.root]
        while waiting:
            node = waiting.pop()
            if id(node) not in found:
                found[id(node)] = node
                yield node
                if isinstance(node, Folder):
                    waiting += [*node.now.values(), *node.durable.values()]

    # what may be left -----------------------------------------------------------------------------

    def tree(
        self,
        names: Callable[[Folder], bool] = lambda _: True,
        data: Callable[[File], Content] = lambda file: file.now,
    ) -> Tree:
        """What lies there if ``names`` says which folders have the names of now,
        and ``data`` what each file holds.
        """

        def look(folder: Folder) -> Tree:
            entries = (
                folder.now if names(folder) else {**folder.durable, **self._arrived(folder, names)}
            )
            return {
                name: look(node) if isinstance(node, Folder) else data(node)
                for name, node in sorted(entries.items())
            }

        return look(self.root)

    def _arrived(self, folder: Folder, names: Callable[[Folder], bool]) -> dict[str, File | Folder]:
        """What was moved here from folders that have the names of now."""
        if not self._moves:
            return {}
        return {
            name: moved
            for moved, source, target, name in self._moves
            if target is folder and names(source) and folder.now.get(name) is moved
        }

    def durable(self) -> dict[str, bytes]:
        """The files that are left with everything unsynced dropped."""
        return flat(self.tree(lambda _: False, lambda file: file.durable))

    def after_cut(self) -> Iterator[tuple[str, Tree]]:
        """The worst trees that a power cut may leave now, each with its name;
        the first one has nothing unsynced.
        """
        nodes = list(self._nodes())
        files = [node for node in nodes if isinstance(node, File) and node.now != node.durable]
        folders = [node for node in nodes if isinstance(node, Folder) and node.now != node.durable]
        lost, kept = (lambda file: file.durable), (lambda file: file.now)
        partly = (("none of the bytes", lost), ("half of the bytes", _torn), ("zeros", _zeros))
        everywhere = {"all names": lambda _: True, "no names": lambda _: False}
        yield "nothing", self.tree(everywhere["no names"], lost)
        for called, names in everywhere.items():
            for how, data in (*partly, ("all bytes", kept)):
                yield f"{called}, {how}", self.tree(names, data)
            for number, each in enumerate(files):
                yield (
                    f"{called}, bytes of {number} alone",
                    self.tree(names, _choose(each, kept, lost)),
                )
                for how, data in partly:
                    yield (
                        f"{called}, all bytes but {how} of {number}",
                        self.tree(names, _choose(each, data, kept)),
                    )
        for number, folder in enumerate(folders):
            for how, data in (("none of the bytes", lost), ("all bytes", kept)):
                yield (
                    f"names of {number} alone, {how}",
                    self.tree(lambda each, one=folder: each is one, data),
                )
                yield (
                    f"names but those of {number}, {how}",
                    self.tree(lambda each, one=folder: each is not one, data),
                )


def _with_hole(data: bytes, operation: Operation) -> bytes:
    stop = operation.offset + operation.size
    return data[: operation.offset] + bytes(len(data[operation.offset : stop])) + data[stop:]


def _choose(
    one: File, its: Callable[[File], Content], others: Callable[[File], Content]
) -> Callable[[File], Content]:
    return lambda file: its(file) if file is one else others(file)


def _torn(file: File) -> Content:
    """The first half of what differs from the synced bytes, and these from there on."""
    old, new = file.durable.data, file.now.data
    if old == new:
        return file.durable
    start = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]),
        min(len(old), len(new)),
    )
    middle = (start + len(new)) // 2
    return Content(new[:middle] + old[middle:])


def _zeros(file: File) -> Content:
    """The right length, and zeros for what differs from the synced bytes:
    a size may be on the disk before them.
    """
    old, new = file.durable.data, file.now.data
    if old == new:
        return file.durable
    kept = bytes(byte if byte == before else 0 for byte, before in zip(new, old, strict=False))
    return Content(kept.ljust(len(new), b"\0"))


def _load(folder: Path) -> Folder:
    loaded = Folder()
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            raise ValueError(f"{path}: links are not followed")
        node: File | Folder
        if path.is_dir():
            node = _load(path)
        else:
            found = path.stat()
            content = Content(path.read_bytes(), (found.st_atime_ns, found.st_mtime_ns))
            node = File(content, content)
        loaded.now[path.name] = loaded.durable[path.name] = node
    return loaded


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run: the folder before it, and what it did there."""

    before: Path
    operations: Sequence[Operation]

    def replay(self) -> Iterator[tuple[int, str, Tree]]:
        """The trees that a power cut may leave after each prefix of the operations, each tree once.

        Yields:
            How many operations were done, in words what is left of the unsynced, and the tree.
        """
        disk, seen = Disk(self.before), set()
        for done, operation in enumerate((None, *self.operations)):
            if operation is not None:
                disk.apply(operation)
                if operation.kind == "sync":  # it has only begun
                    continue
            for called, tree in disk.after_cut():
                mark = hash(_fixed(tree))
                if mark not in seen:
                    seen.add(mark)
                    yield done, called, tree

    def some_trees(self, chance: random.Random, count: int) -> Iterator[tuple[int, str, Tree]]:
        """So many trees of ``replay``, each of another moment, without making all of them."""
        moments = chance.sample(range(len(self.operations) + 1), count)
        disk = Disk(self.before)
        for done in range(max(moments) + 1):
            if done:
                disk.apply(self.operations[done - 1])
            if done in moments:
                yield done, *chance.choice(list(disk.after_cut()))

    def steps(self) -> Iterator[tuple[Operation, Disk]]:
        """Each operation, and the disk after it."""
        disk = Disk(self.before)
        for operation in self.operations:
            disk.apply(operation)
            yield operation, disk

    def end(self) -> Disk:
        """The disk after all operations."""
        disk = Disk(self.before)
        for operation in self.operations:
            disk.apply(operation)
        return disk


def record_run(command: Sequence[str], folder: Path, status: int = 0, **files: bytes) -> Run:
    """Record arguments of Python in a new folder that holds these files;
    the recording accounts for all it left.
    """
    for each in (folder / "before", folder / "work"):
        each.mkdir(parents=True)
        for name, content in files.items():
            (each / name).parent.mkdir(parents=True, exist_ok=True)
            (each / name).write_bytes(content)
    run = Run(folder / "before", record(command, folder / "work", status))
    assert flat(run.end().tree()) == read(folder / "work")
    return run


def _fixed(tree: Tree) -> tuple[object, ...]:
    """A tree as what has a hash."""
    return tuple(
        (name, _fixed(node) if isinstance(node, dict) else node) for name, node in tree.items()
    )


def flat(tree: Tree, below: str = "") -> dict[str, bytes]:
    """The bytes of every file of a tree, by path."""
    found: dict[str, bytes] = {}
    for name, node in tree.items():
        found.update(
            flat(node, f"{below}{name}/")
            if isinstance(node, dict)
            else {f"{below}{name}": node.data}
        )
    return found


def build(tree: Tree, folder: Path) -> None:
    """Make ``folder``, which must not be there, hold a tree."""
    folder.mkdir()
    for name, node in tree.items():
        if isinstance(node, dict):
            build(node, folder / name)
        else:
            (folder / name).write_bytes(node.data)
            if node.times:
                os.utime(folder / name, ns=node.times)


def read(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder, by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Commands:
    """Runs imagenet-prep many times in little time,
    in processes that are forked from one that has imported it.
    """

    def __init__(self) -> None:
        self._server = CommandServer()

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def run(self, arguments: Sequence[str], folder: Path) -> tuple[int, str]:
        """Run a command in a folder; its exit status, and what it printed."""
        ran = self._server.run(arguments, folder, environment())
        return ran.returncode, ran.stdout + ran.stderr
