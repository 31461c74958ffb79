"""claimed: holds a lock by a file whose name tells the process,
where the file system has no locks.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""How flock fails on a file system without locks."""

_TRIES = 5
_MOST_WAIT = (
    0.2  # seconds before another try: of two processes that start at once, one should get the lock
)

_NAME = re.compile(r"\..+\.claim-(\d+)-(\d*)-(\d*)-([0-9a-f]*)-([0-9a-f]+)-(.+)")


class Claim(Struct, frozen=True):
    """A process that claims a lock. Its file is empty, and its name tells all, even if the process
    is killed at once.

    Args:
        process: its id.
        started: when it started, in the system's ticks, since ids are given again; "" if the system
            does not say.
        space: the namespace in which the id is valid, which differs between containers; "" if there
            is none.
        boot: the start of the random id of the machine's last boot; "" if there is none.
        machine: a mark of the machine's own id.
        host: the machine's name.
    """

    process: int
    started: str
    space: str
    boot: str
    machine: str
    host: str

    @classmethod
    def by_this_process(cls) -> Claim:
        """The claim of the process that asks."""
        process, host = os.getpid(), re.sub(r"[^A-Za-z0-9.-]", "_", os.uname().nodename)
        machine = f"{zlib.crc32(_read('/etc/machine-id').encode()):08x}"
        return cls(
            process,
            _started(process),
            _space(),
            _read("/proc/sys/kernel/random/boot_id")[:8],
            machine,
            host,
        )

    def path(self, lock: Path) -> Path:
        """Its file, next to the lock file."""
        words = (self.process, self.started, self.space, self.boot, self.machine, self.host)
        return lock.with_name(f".{lock.name}.claim-{'-'.join(map(str, words))}")

    @property
    def fate(self) -> Literal["lives", "gone", "unknown"]:
        """Whether its process lives; unknown for other machines and containers."""
        here = Claim.by_this_process()
        if (self.host, self.machine) != (here.host, here.machine):
            return "unknown"
        if self.boot != here.boot:
            return "gone"
        if self.space != here.space:
            return "unknown"
        return "lives" if _lives(self.process, self.started) else "gone"

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _space() -> str:
    try:
        return re.sub(r"\D", "", str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        return ""


def _started(process: int) -> str:
    """The ticks from the machine's boot to the start of a process; "" if it is gone or hidden."""
    fields = (
        _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    )  # the command before may hold anything
    return fields[19] if len(fields) > 19 else ""


def _lives(process: int, started: str) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return _started(process) in (started, "")


def find_claims(lock: Path) -> list[Claim]:
    """The claims of a lock; files of dead processes are removed."""
    claims = []
    for path in lock.parent.glob(f".{lock.name}.claim-*"):
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        claim = Claim(int(match[1]), *match.groups()[1:])
        if claim.fate != "gone":
            claims.append(claim)
            continue
        with contextlib.suppress(OSError):
            path.unlink()
    return sorted(claims, key=str)


@contextlib.contextmanager
def claimed(lock: Path) -> Iterator[None]:
    """Claim a lock, and remove the claim at the end; forked children don't keep it.

    Each process first makes its own file, then looks for others: of two processes, at least one
    sees the other.

    Raises:
        BlockingIOError: another process claims it, or this one.
        OSError: the system refuses to make the file.
    """
    claim = Claim.by_this_process()
    path = claim.path(lock)
    _enter(lock, claim, path)
    try:
        yield
    finally:
        if os.getpid() == claim.process:
            with contextlib.suppress(OSError):
                path.unlink()


def _enter(lock: Path, claim: Claim, path: Path) -> None:
    for _ in range(_TRIES):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except FileExistsError:
            break  # this process holds it
        if find_claims(lock) == [claim]:
            return
        path.unlink()
        time.sleep(random.uniform(0, _MOST_WAIT))
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), os.fspath(lock))
