"""download: the official archives, or a copy that a site hands out; fetched, checked, and put under their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError, Text, UsageError
from imagenet_prep.fetch.access import Credentials, open_session
from imagenet_prep.fetch.looks import look_at
from imagenet_prep.fetch.offers import Offer, Site, explained
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import Remote, inspect
from imagenet_prep.fetch.session import Session, bare_url, file_url, host_of
from imagenet_prep.fetch.site import BASE_URL
from imagenet_prep.fetch.target import Target
from imagenet_prep.fetch.transfer import fetch
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_tars import class_tars_in
from imagenet_prep.ilsvrc2012.facts import ARCHIVES, OfficialArchive
from imagenet_prep.ilsvrc2012.part import WHOLE, Part
from imagenet_prep.ilsvrc2012.remote_classes import RemoteClasses
from imagenet_prep.model import Progress, Silent
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.space import check_free_space
from imagenet_prep.text import number_of


@dataclass(frozen=True, slots=True)
class DownloadSummary:
    """What a download did: file names, and the bytes of the files fetched."""

    fetched: tuple[str, ...]
    present: tuple[str, ...]
    size: int


def pending(
    layout: Layout,
    *,
    only: Sequence[str] = facts.DEFAULT_ARCHIVES,
    check_digest: bool = True,
    digests: Mapping[str, str] | None = None,
    part: Part = WHOLE,
) -> list[OfficialArchive]:
    """The archives that a download with these settings would ask a server for; finding out costs nothing.

    Raises:
        InputError: a file is there that is known not to be the archive, by its size or the MD5 it had when checked.
        UsageError: ``only`` names an archive that isn't known.
    """
    targets = _targets(layout, only, check_digest, digests or {})
    is_in_part = _pick_train(targets, part) is not None
    missing = [ARCHIVES[key] for key, target in targets.items() if not target.is_there()]
    return [ARCHIVES[facts.TRAIN], *missing] if is_in_part and _missing_classes(layout, part) else missing


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
    part: Part = WHOLE,
    progress: Progress | None = None,
    pace: Pace | None = None,
) -> DownloadSummary:
    """Put the archives named in ``only`` into raw-data, each whole and checked; those already there are kept.

    Of the train archive, if it isn't there, only the tars of the classes of a ``part`` are fetched.

    Args:
        layout: where to.
        only: keys of facts.ARCHIVES.
        base_url: the folder to fetch from.
        credentials: used if the server asks for them.
        cookies: a cookies.txt from a browser.
        connections: how many pieces of a file to fetch at a time.
        check_digest: hold size and MD5 against the official ones; otherwise the server's word is taken for both.
        digests: the MD5, by key, of archives that are other than the official ones; their size is the server's word.
        part: the classes of whose train images the tars are fetched, where it is not all of them.
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
    train = _pick_train(targets, part)
    job = _Fetching(progress or Silent(), connections, pace or Pace())
    with hold(layout.lock_paths):
        missing = [target for target in targets.values() if not target.is_there()]
        wnids = _missing_classes(layout, part) if train else []
        asked_for = [train, *missing] if train and wnids else missing
        classes = None
        if asked_for:
            first, note = asked_for[0].filename, job.progress.note
            session = open_session(base_url, credentials, cookies, probe=first, pace=job.pace, note=note)
            urls = {target.filename: file_url(base_url, target.filename) for target in asked_for}
            remotes = {each.filename: job.inspect(session, urls[each.filename], each) for each in asked_for}
            if train and wnids:
                classes = job.find_classes(session, urls[train.filename], remotes[train.filename], wnids)
            to_come = sum(target.to_come(remotes[target.filename]) for target in missing)
            _check_space(layout, to_come + (classes.bytes_to_come(layout) if classes else 0))
        for target in targets.values():
            if target in missing:
                job.fetch(session, urls[target.filename], target, remotes[target.filename])
            else:
                target.check_present(job.progress)
        if classes:
            classes.fetch(layout, class_tars_in(layout), connections, job.progress)
    done = _summary(targets.values(), missing, sum(remotes[target.filename].total for target in missing))
    return _with_classes(done, part, wnids, classes) if train else done


def _pick_train(targets: dict[str, Target], part: Part) -> Target | None:
    """The train archive, taken from the targets, where single classes are to come in its place."""
    is_meant = not part.is_whole and facts.TRAIN in targets and not targets[facts.TRAIN].path.exists()
    return targets.pop(facts.TRAIN) if is_meant else None


def _missing_classes(layout: Layout, part: Part) -> list[str]:
    """The classes whose tars are not there."""
    there = class_tars_in(layout).wnids()
    return [wnid for wnid in part.labels if wnid not in there]


def _with_classes(
    done: DownloadSummary, part: Part, wnids: Sequence[str], classes: RemoteClasses | None
) -> DownloadSummary:
    """A summary that has the tars of classes, too."""
    fetched, present = (
        (f"{number_of(count, 'class', 'classes')} of {ARCHIVES[facts.TRAIN].filename}",) if count else ()
        for count in (len(wnids), len(part.labels) - len(wnids))
    )
    size = done.size + (classes.size if classes else 0)
    return DownloadSummary((*done.fetched, *fetched), (*done.present, *present), size)


def download_copy(
    layout: Layout,
    site: Site,
    *,
    connections: int = 4,
    progress: Progress | None = None,
    pace: Pace | None = None,
) -> DownloadSummary:
    """Put the files of the copy that ``site`` hands out into raw-data, each whole and checked; those there are kept.

    Where the site tells no digest of a file, it must at least look like what it should be.

    Args:
        layout: where to.
        site: where from, and who asks.
        connections: how many pieces of a file to fetch at a time.
        progress: gets a bar for each file, which is numbered where there are several.
        pace: timing and budget of retries.

    Raises:
        AccessError: there are no credentials, or they don't suffice; it says what does.
        BusyError, InputError, NetworkError, SpaceError, UsageError: as ``download``.
    """
    if connections < 1:
        raise UsageError(f"{connections} connections", "expected at least 1")
    layout = dataclasses.replace(layout, raw=None)
    job = _Fetching(progress or Silent(), connections, pace or Pace())
    with hold(layout.lock_paths), explained(site):
        session = site.enter(job.pace.stall, job.progress.note)
        offers = site.files(session, layout.copy_path(site.key), job.pace)
        targets = {Target(layout, offer.filename, offer.size, offer.digests): offer for offer in offers}
        missing = {target: offer for target, offer in targets.items() if not target.is_there()}
        job.announce(site.name, missing)
        for number, (target, offer) in enumerate(targets.items(), 1):
            each = dataclasses.replace(job, progress=Numbered(job.progress, number, len(targets)))
            if target in missing:
                each.fetch(session, offer.url, target)
            else:
                target.check_present(each.progress)
    return _summary(targets, missing, sum(offer.size for offer in missing.values()))


def _targets(layout: Layout, only: Sequence[str], check_digest: bool, digests: Mapping[str, str]) -> dict[str, Target]:
    unknown = [key for key in only if key not in ARCHIVES]
    if unknown:
        raise UsageError(f"no archive is called {unknown[0]!r}", f"expected some of {', '.join(ARCHIVES)}")
    layout = dataclasses.replace(layout, raw=None)  # that place is only ever read
    return {key: _target(layout, ARCHIVES[key], check_digest, digests.get(key)) for key in only}


def _target(layout: Layout, archive: OfficialArchive, check_digest: bool, digest: str | None) -> Target:
    official = {"md5": archive.md5, **({"sha256": archive.sha256} if archive.sha256 else {})}
    expected = ({"md5": digest} if digest else official) if check_digest else {}
    return Target(layout, archive.filename, archive.size if digest is None and check_digest else None, expected)


def _summary(targets: Iterable[Target], missing: Collection[Target], size: int) -> DownloadSummary:
    return DownloadSummary(
        fetched=tuple(target.filename for target in targets if target in missing),
        present=tuple(target.filename for target in targets if target not in missing),
        size=size,
    )


@dataclass(frozen=True, slots=True)
class _Fetching:
    """The steps of a download."""

    progress: Progress
    connections: int
    pace: Pace

    def find_classes(self, session: Session, url: str, remote: Remote, wnids: Sequence[str]) -> RemoteClasses:
        """Where the tars of classes lie in the train archive on the server."""
        return RemoteClasses.find(session, url, remote, wnids, self.pace, self.progress)

    def announce(self, where: str, missing: Mapping[Target, Offer]) -> None:
        """Say what is fetched, once it is sure that it fits on the disk."""
        if missing:
            to_come = sum(target.to_come(_as_offered(offer)) for target, offer in missing.items())
            _check_space(next(iter(missing)).layout, to_come)
            self.progress.note(f"{where}: {number_of(len(missing), 'file')}, {to_come:,} bytes to fetch")

    def fetch(self, session: Session, url: str, target: Target, remote: Remote | None = None) -> None:
        """Fetch one file, check it, and give it its name."""
        fetched = fetch(
            session,
            url,
            target.partial,
            self.progress,
            remote=remote or self.inspect(session, url, target),
            digests=target.digests,
            connections=self.connections,
            pace=self.pace,
        )
        target.place(fetched)

    def inspect(self, session: Session, url: str, target: Target) -> Remote:
        """What the server has, once it is sure that it is what is expected, as far as can be told now."""
        remote = inspect(session, url, self.pace)
        if target.size not in (None, remote.total):
            raise InputError(
                f"{host_of(url)} has another {target.filename}",
                f"expected {target.size:,} bytes, the server's has {remote.total:,}",
                "check the address given with --base-url; nothing of it was fetched",
            )
        if not target.digests:
            look_at(session, url, remote, self.pace, target.filename)
        return remote


def _check_space(layout: Layout, to_come: int) -> None:
    check_free_space(layout.own_raw_dir, to_come, "for what is still to be downloaded")


def _as_offered(offer: Offer) -> Remote:
    return Remote(bare_url(offer.url), offer.size, None, None)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A Progress whose bars say which of several files they are about."""

    progress: Progress
    number: int
    count: int

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Start a bar: 3 of 308, and its own label."""
        which = f"{self.number:,} of {self.count:,}: " if self.count > 1 else ""
        self.progress.begin(f"{which}{label}", total, unit, done)

    def advance(self, amount: int = 1) -> None:
        """Pass it on."""
        self.progress.advance(amount)

    def end(self) -> None:
        """Pass it on."""
        self.progress.end()

    def note(self, text: str) -> None:
        """Pass it on."""
        self.progress.note(text)

    def worded(self, text: Text) -> str:
        """As the one that it passes on to says it."""
        return self.progress.worded(text)
