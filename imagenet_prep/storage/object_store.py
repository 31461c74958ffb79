"""ObjectStore: objects below a prefix as a Store; a Sink is an upload in parts, streamed from memory."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from imagenet_prep.storage import objects
from imagenet_prep.storage.object_path import ObjectPath
from imagenet_prep.storage.ranged import RangedView
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import Buffer
from imagenet_prep.storage.uploads import abort_uploads


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Objects in a folder of an object store. What is there is whole and durable, so nothing is ever synced."""

    folder: ObjectPath

    @property
    def device(self) -> str:
        """The bucket."""
        return f"{self.folder.scheme}://{self.folder.bucket}"

    def list(self) -> Sequence[str]:
        """The names of all objects in the folder, in order."""
        return [each.name for each in objects.list_folder(self.folder)[1]]

    def sizes(self) -> dict[str, int]:
        """The bytes of each of them, of one request a thousand."""
        return {each.name: each.size for each in objects.list_folder(self.folder)[1]}

    def size(self, name: str) -> int | None:
        """Bytes of an object, None if there is none."""
        found = objects.find(self.folder / name)
        return None if found is None else found.size

    def read(self, name: str, offset: int = 0, length: int | None = None) -> memoryview:
        """These bytes of an object, fetched at once."""
        path = self.folder / name
        try:
            if offset == 0 and length is None:
                return objects.get(path)
            view = RangedView(path)
        except FileNotFoundError as error:
            raise unreadable(path, error) from error
        return view[offset : len(view) if length is None else offset + length]

    def create(self, name: str) -> ObjectSink:
        """An upload, begun by the first part that is full."""
        return ObjectSink(self.folder / name)

    def delete(self, name: str) -> None:
        """Delete an object, if there is one."""
        objects.delete(self.folder / name)

    def sync_names(self) -> None:
        """Nothing to do: what the store has answered for is durable."""

    def sync(self) -> None:
        """Nothing to do either."""


class ObjectSink:
    """An object on its way: some parts of it in memory, those before them uploaded; there is none until ``commit``.

    What is smaller than a part goes in one request when it is committed.
    """

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        self._held: list[Buffer] = []
        self._count = 0  # bytes of them
        self._upload: Any = None
        self._is_committed = False
        self.size = 0

    def write(self, parts: Sequence[Buffer]) -> None:
        """Append all of ``parts``: held until there are enough of them for a part of the upload."""
        for part in parts:
            self._held.append(part)
            self._count += len(part)
            self.size += len(part)
            if self._count >= objects.PART:
                self._send()

    def rest(self) -> None:
        """Nothing is open here."""

    def seal(self) -> None:
        """Nothing to do: the store makes all of it durable when it is committed."""

    def commit(self, name: str = "") -> None:
        """Send the rest, and have the store make one object of all parts."""
        if name and name != self._path.name:
            assert self._upload is None, "an upload has its name from its first part on"
            self._path = self._path.with_name(name)
        if self._upload is None:
            objects.put(self._path, b"".join(self._held))
        else:
            self._send()
            with objects.asking(self._path):
                self._upload.close()
        self._is_committed = True

    def discard(self) -> None:
        """Let the store forget the parts; where it can't be told, the next run does."""
        begun, self._upload = self._upload is not None, None
        self._held = []
        if begun and not self._is_committed:
            with contextlib.suppress(Exception):
                abort_uploads(self._path.parent, self._path.name.__eq__)

    def __enter__(self) -> ObjectSink:
        """Nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Discard it."""
        self.discard()

    def _send(self) -> None:
        held, self._held, self._count = b"".join(self._held), [], 0
        if self._upload is None:
            self._upload = objects.begin_upload(self._path)
        with objects.asking(self._path):
            self._upload.write(held)
