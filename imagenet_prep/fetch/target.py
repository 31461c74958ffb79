"""Target: a file that belongs into raw-data: where it goes, what is expected of it, what was seen of it before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import quoted
from imagenet_prep.fetch.digests import fastest, hasher
from imagenet_prep.fetch.looks import check_look
from imagenet_prep.fetch.partial import finish, forget, kept_bytes
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.fetch.transfer import Fetched
from imagenet_prep.model import Progress
from imagenet_prep.state.checked import seen_digests
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.location import local_path

_CHUNK = 1 << 22
_NAMES = {"md5": "MD5", "sha256": "SHA-256", "crc32c": "CRC32C"}


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A file of the raw folder.

    Args:
        layout: where everything lives; its ``raw`` is None, since that place is only ever read.
        filename: what the file is called.
        size: bytes, None where any size will do.
        digests: those expected (hex), by algorithm: all of the same bytes, so that one stands for the others.
    """

    layout: Layout
    filename: str
    size: int | None
    digests: Mapping[str, str]

    @property
    def path(self) -> Path:
        """Where it is once it is whole and checked."""
        return self.layout.download_path(self)

    @property
    def partial(self) -> Path:
        """Where it arrives."""
        return self.layout.part_path(self)

    def is_there(self) -> bool:
        """Whether a file of its name is there, which is not known to be another.

        Raises:
            InputError: it is known to be another, by its size or a digest that it had when it was checked.
        """
        if not self.path.exists():
            return False
        size = self.path.stat().st_size
        if self.size not in (None, size):
            raise self._stranger(f"expected {self.size:,} bytes, it has {size:,}")
        for algorithm, digest in self._remembered().items():
            self._compare(algorithm, digest)
        return True

    def to_come(self, remote: Remote) -> int:
        """How many of its bytes are still to be fetched."""
        return remote.total - kept_bytes(self.partial, remote, has_digest=bool(self.digests))

    def check_present(self, progress: Progress) -> None:
        """Hash the file that is there already, unless that was done before and it was not touched since.

        Raises:
            InputError: it is another.
        """
        if self.digests and not self._remembered().keys() & self.digests.keys():
            algorithm = fastest(tuple(self.digests))
            self._compare(algorithm, self._digest(algorithm, progress))
            self._remember()
        forget(self.partial)  # a crash right after the renaming leaves what was said of it behind
        remove_abandoned(local_path(self.layout.checked_path))

    def place(self, fetched: Fetched) -> None:
        """Give what has arrived its name, and remember what it is.

        Raises:
            InputError: it is not what was expected; it is kept under a name that nothing reads.
            WriteError: the disk failed.
        """
        if not fetched.is_right:
            raise self._set_aside(fetched)
        if not self.digests:
            check_look(self.partial, self.filename)
        finish(self.partial, self.path)
        self._remember()

    def _remembered(self) -> dict[str, str]:
        """The digests that the file had when it was last checked; none if it was touched since."""
        return seen_digests(self.layout, self.filename, self.path)

    def _remember(self) -> None:
        checked = load_json(self.layout.checked_path)
        stat = self.path.stat()
        entry = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "md5": None, **self.digests}
        entries = {**checked, self.filename: entry} if isinstance(checked, dict) else {self.filename: entry}
        save_json(self.layout.checked_path, entries)

    def _compare(self, algorithm: str, digest: str) -> None:
        expected = self.digests.get(algorithm, digest)
        if digest != expected:
            raise self._stranger(f"expected {_NAMES[algorithm]} {expected}, it has {digest}")

    def _set_aside(self, fetched: Fetched) -> InputError:
        aside = self.layout.corrupt_path(self, fetched.digest)
        self.partial.replace(aside)
        forget(self.partial)
        return InputError(
            f"{self.filename} arrived corrupt; it is kept as {aside}",
            f"expected {_NAMES[fetched.algorithm]} {self.digests[fetched.algorithm]}, got {fetched.digest}",
            "delete that file and run the same command again to fetch it again",
        )

    def _digest(self, algorithm: str, progress: Progress) -> str:
        digest = hasher(algorithm)
        progress.begin(f"checking {self.filename}", self.path.stat().st_size, "B")
        try:
            with self.path.open("rb", buffering=0) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    progress.advance(len(chunk))
        finally:
            progress.end()
        return digest.hexdigest()

    def _stranger(self, detail: str) -> InputError:
        return InputError(
            f"{self.path} is there, but is not the expected archive",
            detail,
            f"move it away (mv {quoted(str(self.path))} ELSEWHERE) and run the same command again to fetch it",
        )
