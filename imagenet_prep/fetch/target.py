"""Target: a file to download into raw-data: its place, its digests, and what was checked before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command_line
from imagenet_prep.fetch.partial import fastest, finish, forget, hasher, kept_bytes
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.fetch.transfer import Fetched
from imagenet_prep.hints import Hint
from imagenet_prep.model import Progress
from imagenet_prep.state.manifest import seen_digests
from imagenet_prep.storage.durable import move_away
from imagenet_prep.storage.files import IN_WORDS, kind_of, load_json, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.location import local_path

_CHUNK = 1 << 20  # bytes of one read
_NAMES = {"md5": "MD5", "sha256": "SHA-256", "crc32c": "CRC32C"}


class Target(Struct, frozen=True, eq=False):
    """A file of the raw folder.

    Args:
        layout: the paths; its ``raw`` is None, since that folder is read-only.
        filename: the file's name.
        size: bytes, None if unknown.
        digests: the expected ones (hex), by algorithm; all describe the same bytes, so any one
            suffices.
    """

    layout: Layout
    filename: str
    size: int | None
    digests: Mapping[str, str]

    @property
    def path(self) -> Path:
        """The path of the complete, checked file."""
        return self.layout.download_path(self)

    @property
    def partial(self) -> Path:
        """The path of the file while it arrives."""
        return self.layout.part_path(self.filename)

    def is_there(self) -> bool:
        """Whether a file of this name exists and is not known to be a different one.

        Raises:
            InputError: its size, or the digest recorded at its last check, is wrong; or it is no
                plain file.
        """
        if not self.path.is_file():
            if self.path.exists() or self.path.is_symlink():
                raise self.stranger(f"expected a file, it is {IN_WORDS[kind_of(self.path)]}")
            return False
        size = self.path.stat().st_size
        if self.size not in (None, size):
            raise self.stranger(f"expected {self.size:,} bytes, it has {size:,}")
        for algorithm, digest in self._remembered().items():
            self._compare(algorithm, digest)
        return True

    def to_come(self, remote: Remote) -> int:
        """The number of bytes still to fetch."""
        return remote.total - kept_bytes(self.partial, remote, has_digest=bool(self.digests))

    def check_present(self, progress: Progress) -> None:
        """Hash the existing file, unless it was checked before and is unchanged since.

        Raises:
            InputError: it is a different file.
        """
        if self.digests and not self._remembered().keys() & self.digests.keys():
            algorithm = fastest(tuple(self.digests))
            self._compare(algorithm, self._digest(algorithm, progress))
            self._remember()
        forget(self.partial)  # a crash right after the rename leaves the maps
        remove_abandoned(local_path(self.layout.checked_path).parent)

    def place(self, fetched: Fetched, fault: str = "") -> None:
        """Give the fetched file its final name, and record its digest; ``fault`` is the one that
        was found in it.

        Raises:
            InputError: it is not the expected file; it is kept under a name that no command reads.
            WriteError: the disk failed.
        """
        if not fetched.is_right:
            expected = f"{_NAMES[fetched.algorithm]} {self.digests[fetched.algorithm]}"
            fault = f"expected {expected}, got {fetched.digest}"
        if fault:
            raise set_aside(self.layout, self.filename, fault, fetched.digest)
        finish(self.partial, self.path)
        self._remember(fetched.remote.url)

    def _remembered(self) -> dict[str, str]:
        """The digests recorded at the file's last check; none if it has changed since."""
        return seen_digests(self.layout, self.filename, self.path)

    def _remember(self, url: str = "") -> None:
        checked = load_json(self.layout.checked_path)
        stat = self.path.stat()
        entry = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "md5": None, **self.digests}
        entry |= {"url": url} if url else {}
        entries = (
            {**checked, self.filename: entry}
            if isinstance(checked, dict)
            else {self.filename: entry}
        )
        save_json(self.layout.checked_path, entries)

    def _compare(self, algorithm: str, digest: str) -> None:
        expected = self.digests.get(algorithm, digest)
        if digest != expected:
            raise self.stranger(f"expected {_NAMES[algorithm]} {expected}, it has {digest}")

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

    def stranger(self, detail: str) -> InputError:
        """The error for a different file under this name."""
        return InputError(
            f"{self.path} is not the expected file",
            detail,
            Hint(
                "run ",
                move_away(self.path),
                ", then the same command again",
            ),
        )


def set_aside(layout: Layout, filename: str, fault: str, digest: str = "") -> InputError:
    """Keep a wrong file that has arrived under a name that no command reads;
    returns the error that says so.
    """
    partial, aside = layout.part_path(filename), layout.corrupt_path(filename, digest or "content")
    partial.replace(aside)
    forget(partial)
    return InputError(
        f"{filename} arrived, but is not the expected file; it is kept as {aside}",
        fault,
        Hint(
            "run ",
            command_line(["rm", "--", str(aside)]),
            ", then the same command again; if that ends so too, the server has another file",
        ),
    )
