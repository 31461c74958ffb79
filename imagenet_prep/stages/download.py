"""download: the official archives, fetched, checked, and put under their names."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import quoted
from imagenet_prep.fetch.access import Credentials, open_session
from imagenet_prep.fetch.front import fastest
from imagenet_prep.fetch.looks import check_look, look_at
from imagenet_prep.fetch.partial import finish, forget, kept_bytes
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import Remote, inspect
from imagenet_prep.fetch.session import Session, file_url, host_of
from imagenet_prep.fetch.site import BASE_URL
from imagenet_prep.fetch.transfer import Fetched, fetch
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.facts import ARCHIVES, OfficialArchive
from imagenet_prep.model import Progress, Silent
from imagenet_prep.storage.atomic import save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.plain import load_json
from imagenet_prep.storage.space import check_free_space

_CHUNK = 1 << 22
_NAMES = {"md5": "MD5", "sha256": "SHA-256"}


@dataclass(frozen=True, slots=True)
class DownloadSummary:
    """What a download did: file names, and the bytes of the files fetched."""

    fetched: tuple[str, ...]
    present: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class _Target:
    """An archive and where it goes; ``size`` and ``digests`` are what is expected, None and empty if not checked.

    ``digests`` are hex, by algorithm; MD5 is always among them. ``checked`` is where it is remembered what was checked.
    """

    archive: OfficialArchive
    path: Path
    partial: Path
    checked: Path
    size: int | None
    digests: Mapping[str, str]

    @property
    def md5(self) -> str | None:
        """The MD5 that is expected, which stands for the others too: a file with one of them has the others."""
        return self.digests.get("md5")

    def remembered(self) -> str | None:
        """The MD5 that the file had when it was last checked, None if it was touched since."""
        checked = load_json(self.checked)
        entry = checked.get(self.path.name) if isinstance(checked, dict) else None
        stat = self.path.stat()
        if not isinstance(entry, dict) or (entry.get("size"), entry.get("mtime_ns")) != (
            stat.st_size,
            stat.st_mtime_ns,
        ):
            return None
        md5 = entry.get("md5")
        return md5 if isinstance(md5, str) else None

    def remember(self, md5: str | None) -> None:
        """Remember the MD5 of the file; None: it was not hashed."""
        checked = load_json(self.checked)
        stat = self.path.stat()
        entry = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "md5": md5}
        entries = {**checked, self.path.name: entry} if isinstance(checked, dict) else {self.path.name: entry}
        save_json(self.checked, entries)


def pending(
    layout: Layout,
    *,
    only: Sequence[str] = facts.DEFAULT_ARCHIVES,
    check_digest: bool = True,
    digests: Mapping[str, str] | None = None,
) -> list[OfficialArchive]:
    """The archives that a download with these settings would ask a server for; finding out costs nothing.

    Raises:
        InputError: a file is there that is known not to be the archive, by its size or the MD5 it had when checked.
        UsageError: ``only`` names an archive that isn't known.
    """
    targets = _targets(layout, only, check_digest, digests or {})
    return [target.archive for target in _missing(targets)]


def download(
    layout: Layout,
    *,
    only: Sequence[str] = facts.DEFAULT_ARCHIVES,
    base_url: str = BASE_URL,
    credentials: Credentials | None = None,
    cookies: Path | None = None,
    connections: int = 4,
    check_digest: bool = True,
    digests: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    pace: Pace | None = None,
) -> DownloadSummary:
    """Put the archives named in ``only`` into raw-data, each whole and checked; those already there are kept.

    Args:
        layout: where to.
        only: keys of facts.ARCHIVES.
        base_url: the folder to fetch from.
        credentials: used if the server asks for them.
        cookies: a cookies.txt from a browser.
        connections: how many pieces of a file to fetch at a time.
        check_digest: hold size and MD5 against the official ones; otherwise the server's word is taken for both.
        digests: the MD5, by key, of archives that are other than the official ones; their size is the server's word.
        progress: gets a bar for each transfer and each hashing, in bytes.
        pace: timing and budget of retries.

    Raises:
        AccessError: credentials are missing or refused.
        BusyError: another run holds DATA_DIR.
        InputError: a file has not the expected size or digest.
        NetworkError: the server can't be reached, or stays in trouble.
        SpaceError: the disk is full, or would be.
        UsageError: an archive, the URL or the cookie file can't be used.
    """
    if connections < 1:
        raise UsageError(f"{connections} connections", "expected at least 1")
    targets = _targets(layout, only, check_digest, digests or {})
    job = _Download(layout, progress or Silent(), connections, pace or Pace())
    with hold(layout.lock_paths):
        missing = _missing(targets)
        if missing:
            first = missing[0].archive.filename
            note = job.progress.note
            session = open_session(base_url, credentials, cookies, probe=first, pace=job.pace, note=note)
            urls = {target.path: file_url(base_url, target.archive.filename) for target in missing}
            remotes = job.survey(session, urls, missing)
        for target in targets:
            if target in missing:
                job.fetch(session, urls[target.path], remotes[target.path], target)
            else:
                job.check_present(target)
    return DownloadSummary(
        fetched=tuple(target.archive.filename for target in missing),
        present=tuple(target.archive.filename for target in targets if target not in missing),
        size=sum(remotes[target.path].total for target in missing),
    )


def _targets(layout: Layout, only: Sequence[str], check_digest: bool, digests: Mapping[str, str]) -> list[_Target]:
    unknown = [key for key in only if key not in ARCHIVES]
    if unknown:
        raise UsageError(f"no archive is called {unknown[0]!r}", f"expected some of {', '.join(ARCHIVES)}")
    layout = dataclasses.replace(layout, raw=None)  # that place is only ever read
    return [_target(layout, ARCHIVES[key], check_digest, digests.get(key)) for key in dict.fromkeys(only)]


def _target(layout: Layout, archive: OfficialArchive, check_digest: bool, digest: str | None) -> _Target:
    official = {"md5": archive.md5, **({"sha256": archive.sha256} if archive.sha256 else {})}
    return _Target(
        archive,
        layout.download_path(archive),
        layout.part_path(archive),
        layout.checked_path,
        archive.size if digest is None and check_digest else None,
        ({"md5": digest} if digest else official) if check_digest else {},
    )


def _missing(targets: list[_Target]) -> list[_Target]:
    """The targets that aren't there. What is there and is known to be wrong is told now, not after hours."""
    missing = [target for target in targets if not target.path.exists()]
    for target in targets:
        if target not in missing:
            _check_size(target)
            if remembered := target.remembered():
                _check_digest(target, "md5", remembered)
    return missing


def _check_size(target: _Target) -> None:
    size = target.path.stat().st_size
    if target.size not in (None, size):
        raise _not_the_archive(target.path, f"expected {target.size:,} bytes, it has {size:,}")


def _check_digest(target: _Target, algorithm: str, digest: str) -> None:
    expected = target.digests.get(algorithm, digest)
    if digest != expected:
        raise _not_the_archive(target.path, f"expected {_NAMES[algorithm]} {expected}, it has {digest}")


@dataclass(frozen=True, slots=True)
class _Download:
    """The steps of a download."""

    layout: Layout
    progress: Progress
    connections: int
    pace: Pace

    def survey(self, session: Session, urls: Mapping[Path, str], missing: list[_Target]) -> dict[Path, Remote]:
        """What the server has for each target, once it is sure that it all fits: the expectations, and the disk."""
        remotes = {target.path: inspect(session, urls[target.path], self.pace) for target in missing}
        for target in missing:
            total = remotes[target.path].total
            if target.size not in (None, total):
                raise InputError(
                    f"{host_of(urls[target.path])} has another {target.archive.filename}",
                    f"expected {target.size:,} bytes, the server's has {total:,}",
                    "check the address given with --base-url; nothing was fetched",
                )
            if not target.digests:
                look_at(session, urls[target.path], remotes[target.path], self.pace)
        needed = sum(_bytes_to_come(target, remotes[target.path]) for target in missing)
        check_free_space(missing[0].path.parent, needed, "for what is still to be downloaded")
        return remotes

    def fetch(self, session: Session, url: str, remote: Remote, target: _Target) -> None:
        """Fetch one archive, check it, and give it its name."""
        fetched = fetch(
            session,
            url,
            target.partial,
            self.progress,
            remote=remote,
            digests=target.digests,
            connections=self.connections,
            pace=self.pace,
        )
        if not fetched.is_right:
            raise self._set_aside(target, fetched)
        if not target.digests:
            check_look(target.partial, target.archive.filename)
        finish(target.partial, target.path)
        target.remember(target.md5)

    def check_present(self, target: _Target) -> None:
        """Hash an archive that is there already, unless that was done before and it was not touched since."""
        if target.md5 and not target.remembered():
            algorithm = fastest(tuple(target.digests))
            _check_digest(target, algorithm, self._digest(target.path, algorithm))
            target.remember(target.md5)
        forget(target.partial)  # a crash right after the renaming leaves what was said of it behind

    def _set_aside(self, target: _Target, fetched: Fetched) -> InputError:
        aside = self.layout.corrupt_path(target.archive, fetched.digest)
        target.partial.replace(aside)
        forget(target.partial)
        return InputError(
            f"{target.archive.filename} arrived corrupt; it is kept as {aside}",
            f"expected {_NAMES[fetched.algorithm]} {target.digests[fetched.algorithm]}, got {fetched.digest}",
            "delete that file and run the same command again to fetch it afresh",
        )

    def _digest(self, path: Path, algorithm: str) -> str:
        digest = hashlib.new(algorithm, usedforsecurity=False)
        self.progress.begin(f"checking {path.name}", path.stat().st_size, "B")
        try:
            with path.open("rb", buffering=0) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    self.progress.advance(len(chunk))
        finally:
            self.progress.end()
        return digest.hexdigest()


def _bytes_to_come(target: _Target, remote: Remote) -> int:
    return remote.total - kept_bytes(target.partial, remote, has_digest=bool(target.digests))


def _not_the_archive(path: Path, detail: str) -> InputError:
    return InputError(
        f"{path} is there, but is not the expected archive",
        detail,
        f"move it away (mv {quoted(str(path))} ELSEWHERE) and run the same command again to fetch it",
    )
