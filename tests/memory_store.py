"""MemoryStore: a Store of tests, which holds its objects in a dictionary
and notes what is asked of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from imagenet_prep.errors import InputError
from imagenet_prep.storage.store import ObjectEntry, RemoteStore


@dataclass(frozen=True, eq=False)
class MemoryStore(RemoteStore):
    """Objects by key; ``asked`` holds the name of each method with the key."""

    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[object, ...]] = field(default_factory=list)

    @property
    def root(self) -> str:
        """Before the keys."""
        return "memory://tests"

    def find(self, name: str) -> ObjectEntry | None:
        """Size of an object; all have one time."""
        content = self.objects.get(self.key(name))
        return (
            None
            if content is None
            else ObjectEntry(name.rpartition("/")[2], self.url(name), len(content), 10**18)
        )

    def get(self, name: str, most: int) -> memoryview:
        """All of it."""
        self.asked.append(("get", self.key(name)))
        (content,) = self.read_ranges(name, [(0, most + 1)])
        if len(content) > most:
            raise InputError(f"{self.url(name)} holds more than {most:,} bytes")
        return content

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> Sequence[memoryview]:
        """Its slices."""
        self.asked.extend((self.key(name), start, stop - start) for start, stop in ranges)
        if self.key(name) not in self.objects:
            raise FileNotFoundError(2, "No such object", self.url(name))
        content = memoryview(self.objects[self.key(name)])
        return [content[start:stop] for start, stop in ranges]

    def put(self, name: str, content: bytes | memoryview, *, is_new: bool = False) -> bool:
        """Keep it."""
        if is_new and self.key(name) in self.objects:
            return False
        self.objects[self.key(name)] = bytes(content)
        return True

    def delete(self, name: str) -> None:
        """Forget it."""
        self.objects.pop(self.key(name), None)

    def list_folder(self, name: str = "") -> Sequence[ObjectEntry]:
        """By the slashes of keys."""
        lead = f"{self.key(name)}/" if self.key(name) else ""
        below = sorted(key.removeprefix(lead) for key in self.objects if key.startswith(lead))
        folders = sorted({each.partition("/")[0] for each in below if "/" in each})
        files = [f"{name}/{each}".lstrip("/") for each in below if "/" not in each]
        found = [ObjectEntry(each, self.url(f"{name}/{each}".lstrip("/"))) for each in folders]
        return found + [one for each in files if (one := self.find(each))]
