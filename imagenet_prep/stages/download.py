"""download: fetches the official archives, or a site's copy, checks them,
and gives them their final names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.fetch import BASE_URL
from imagenet_prep.fetch.access import SignIn, open_session
from imagenet_prep.fetch.addresses import bare_url, file_url, host_of
from imagenet_prep.fetch.base_url_words import about_base_url
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.providers import Offer, Site
from imagenet_prep.fetch.reply import Remote, RemoteFile, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.target import Target
from imagenet_prep.fetch.transfer import Manner, fetch
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.arrivals import RemoteClasses, fault_of, look_at
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.ilsvrc2012.facts import ARCHIVES, OfficialArchive
from imagenet_prep.ilsvrc2012.official_tars import class_tars_in
from imagenet_prep.model import Progress, Silent
from imagenet_prep.storage.durable import move_away
from imagenet_prep.storage.files import IN_WORDS, kind_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import AGAIN
from imagenet_prep.storage.space import Need, refuse_lack, rooms_for
from imagenet_prep.text import listed, number_of, size_text


class DownloadSummary(Struct, frozen=True):
    """The result of a download: file names, and the bytes fetched."""

    fetched: tuple[str, ...]
    present: tuple[str, ...]
    size: int


class Incoming(Struct, frozen=True):
    """A file, or several of one kind, that a download is about to fetch.

    Args:
        name: its name.
        size: all its bytes.
        to_come: the bytes still to fetch.
        files: the number of files.
        is_about: whether the sizes are estimates.
    """

    name: str
    size: int
    to_come: int
    files: int = 1
    is_about: bool = False

    def need(self, layout: Layout) -> Need:
        """The disk space it requires."""
        return Need(
            "download", self.name, layout.own_raw_dir, self.to_come, self.files, self.is_about
        )


class DownloadOptions(Struct, frozen=True):
    """Settings of a download.

    Args:
        site: the site whose copy ``run`` fetches; None: the official archives.
        base_url: the folder to fetch the archives from.
        credentials: used if the server asks for them; or a function that finds them then.
        cookies: a cookies.txt from a browser.
        connections: the number of pieces of a file to fetch at a time.
        check_digest: compare size and MD5 with the official ones; otherwise trust the server's.
        digests: the MD5, by key, of archives other than the official ones; the server gives their
            size.
        pace: timing and budget of retries.
    """

    site: Site | None = None
    base_url: str = BASE_URL
    credentials: SignIn | None = None
    cookies: Path | None = None
    connections: int = 4
    check_digest: bool = True
    digests: Mapping[str, str] | None = None
    pace: Pace = field(default_factory=Pace)

    def manner(self, progress: Progress | None) -> Manner:
        """How to fetch each file. Raises UsageError for fewer than 1 connection."""
        if self.connections < 1:
            raise UsageError(
                f"can't download with {self.connections} connections", "expected at least 1"
            )
        return Manner(progress or Silent(), self.connections, self.pace)


Before = Callable[[Sequence[Incoming]], None]
"""Called with the files that a download is about to fetch;
an error that it raises ends the download.
"""


def download(
    layout: Layout,
    options: DownloadOptions = DownloadOptions(),
    *,
    only: Sequence[str] = facts.DEFAULT_ARCHIVES,
    part: Part = WHOLE,
    before: Before | None = None,
    progress: Progress | None = None,
) -> DownloadSummary:
    """Fetch the archives named in ``only`` into raw-data, each complete and checked; existing ones
    are kept.

    If the train archive is missing, only the class tars of a ``part`` are fetched in its place.
    ``before`` checks that the incoming files fit on the disk; None: compare their size with the
    free space.

    Raises:
        AccessError, NetworkError, InputError: the server refuses, keeps failing, or sends a wrong
            file.
        UsageError: an archive, the URL or the cookie file can't be used.
    """
    layout.refuse_urls()
    manner = options.manner(progress)
    archives, train = _targets(layout, only, part, options.check_digest, options.digests)
    targets = archives.values()
    size = 0
    is_given = options.base_url != BASE_URL
    with hold(layout.lock_paths), about_base_url(is_given=is_given):
        missing = [target for target in targets if not _is_there(target)]
        missing_wnids, present_wnids = _find_classes(layout, part, train)
        classes: RemoteClasses | None = None
        class_archive = train if missing_wnids else None
        probed = [class_archive, *missing] if class_archive else missing
        if probed:
            session, remotes = _ask(options, probed, manner)
            incoming = [_incoming(target, remotes[target]) for target in missing]
            if class_archive:
                url = _url(options, class_archive)
                remote = remotes[class_archive]
                classes = RemoteClasses.find(session, url, remote, missing_wnids, manner)
                incoming_classes = _incoming_classes(classes, missing_wnids, layout)
                incoming.append(incoming_classes)
            _announce(incoming, layout, before, manner.progress)
        for target in targets:
            if target not in missing:
                target.check_present(manner.progress)
                continue
            url = _url(options, target)
            remote = remotes[target]
            _fetch(session, url, target, manner, remote)
            size += remote.total
        if classes:
            tars = class_tars_in(layout)
            classes.fetch(layout, tars)
            size += classes.size
    tars_fetched = _tars(missing_wnids)
    tars_present = _tars(present_wnids)
    return _summary(targets, missing, size, tars_fetched, tars_present)


def _ask(
    options: DownloadOptions, targets: Sequence[Target], manner: Manner
) -> tuple[Session, dict[Target, Remote]]:
    """A session that the server accepts, and its versions of these files;
    it has just sent bytes of the first one.
    """
    probed = targets[0]
    session = open_session(
        options.base_url,
        options.credentials,
        options.cookies,
        probe=probed.filename,
        pace=manner.pace,
        note=manner.progress.note,
    )
    remotes = {}
    for target in targets:
        url = _url(options, target)
        was_seen = target is probed
        remotes[target] = _inspect(session, url, target, manner.pace, was_seen=was_seen)
    return session, remotes


def _url(options: DownloadOptions, target: Target) -> str:
    return file_url(options.base_url, target.filename)


def _find_classes(layout: Layout, part: Part, train: Target | None) -> tuple[list[str], list[str]]:
    """The classes without a tar, and those with one; none if ``train`` is not to be fetched."""
    if train is None:
        return [], []
    tars = class_tars_in(layout).wnids()
    missing = [wnid for wnid in part.labels if wnid not in tars]
    present = [wnid for wnid in part.labels if wnid in tars]
    return missing, present


def _tars(wnids: Sequence[str]) -> tuple[str, ...]:
    """The name of some classes of the train archive, if there are any."""
    if not wnids:
        return ()
    classes = number_of(len(wnids), "class", "classes")
    archive = ARCHIVES[facts.TRAIN]
    return (f"{classes} of {archive.filename}",)


def download_copy(
    layout: Layout,
    site: Site,
    options: DownloadOptions = DownloadOptions(),
    *,
    part: Part = WHOLE,
    before: Before | None = None,
    progress: Progress | None = None,
) -> DownloadSummary:
    """Fetch the copy that ``site`` offers into raw-data, each file complete and checked; existing
    ones are kept.

    If the site gives no digest of a file, only its format is checked. If a ``part`` is wanted, a
    note explains that all is fetched. ``before`` is as in ``download``.

    Raises:
        AccessError: credentials are missing or insufficient; its hint names the remedy.
        BusyError, InputError, NetworkError, SpaceError, UsageError: as ``download``.
    """
    layout.refuse_urls()
    manner = options.manner(progress)
    layout = replace(layout, raw=None)
    with hold(layout.lock_paths), site.explained():
        session = site.enter(manner.pace.stall, manner.progress.note)
        targets, missing = _offered(layout, site, session, manner.pace)
        if missing:
            incoming = _all_of(site, missing)
            _announce([incoming], layout, before, Silent())
            files = number_of(incoming.files, "file")
            size = size_text(incoming.to_come)
            manner.progress.note(f"{site.name}: {files}, {size} to fetch")
            if not part.is_whole:
                manner.progress.note(all_come(site, part))
        for target, offer in targets.items():
            if target in missing:
                _fetch(session, offer.url, target, manner)
            else:
                target.check_present(manner.progress)
    fetched_size = sum(offer.size for offer in missing.values())
    return _summary(targets, missing, fetched_size)


# without fetching anything ------------------------------------------------------------------------


def foresee(
    layout: Layout,
    *,
    only: Sequence[str] = facts.DEFAULT_ARCHIVES,
    part: Part = WHOLE,
    check_digest: bool = True,
    digests: Mapping[str, str] | None = None,
) -> tuple[Incoming, ...]:
    """The files that ``download`` would fetch with these settings, by published sizes; no server is
    asked.

    Sizes are estimates for classes, and for archives whose size is unpublished or not compared.

    Raises:
        InputError: an existing file is a different one, by its size or the MD5 recorded at its last
            check.
        UsageError: ``only`` names an unknown archive.
    """
    layout.refuse_urls()
    targets, train = _targets(layout, only, part, check_digest, digests)
    incoming = []
    for key, target in targets.items():
        if not _is_there(target):
            remote = Remote("", ARCHIVES[key].about, None, None)
            archive = _incoming(target, remote)
            is_about = target.size is None
            incoming.append(replace(archive, is_about=is_about))
    wnids, _ = _find_classes(layout, part, train)
    if wnids:
        count = len(wnids)
        (name,) = _tars(wnids)
        size = ARCHIVES[facts.TRAIN].about * count // facts.CLASSES
        class_tars = Incoming(name, size, size, count, is_about=True)
        incoming.append(class_tars)
    return tuple(incoming)


def foresee_copy(
    layout: Layout, site: Site, *, progress: Progress | None = None
) -> tuple[Incoming, ...]:
    """The files that ``download_copy`` would fetch: the site is asked for their names and sizes
    only.

    Raises:
        AccessError, InputError, NetworkError, UsageError: as ``download_copy``.
    """
    layout.refuse_urls()
    progress = progress or Silent()
    layout = replace(layout, raw=None)
    pace = Pace(tries=2)
    with site.explained():
        session = site.enter(pace.stall, progress.note)
        _, missing = _offered(layout, site, session, pace, is_kept=False)
    if not missing:
        return ()
    copy = _all_of(site, missing)
    return (copy,)


# the steps ----------------------------------------------------------------------------------------


def _offered(
    layout: Layout, site: Site, session: Session, pace: Pace, *, is_kept: bool = True
) -> tuple[dict[Target, Offer], dict[Target, Offer]]:
    """All files that a site offers, and those that are missing."""
    list_path = layout.copy_path(site.key)
    offers = site.files(session, list_path, pace, is_kept=is_kept)
    targets: dict[Target, Offer] = {}
    for offer in offers:
        target = Target(layout, offer.filename, offer.size, offer.digests)
        targets[target] = offer
    missing = {target: offer for target, offer in targets.items() if not _is_there(target)}
    return targets, missing


def _is_there(target: Target) -> bool:
    """Whether a file of this name exists; one without a known digest must look right, as at
    arrival.

    Raises:
        InputError: it is a different one; or its folder is no folder.
    """
    folder = target.path.parent
    if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
        kind = IN_WORDS[kind_of(folder)]
        hint = Hint("run ", move_away(folder), f", {AGAIN}")
        raise InputError(f"{folder} is {kind}", "expected a folder", hint)
    is_there = target.is_there()
    if is_there and not target.digests:
        fault = fault_of(target.path, target.filename)
        if fault:
            raise target.stranger(fault)
    return is_there


def _targets(
    layout: Layout,
    only: Sequence[str],
    part: Part,
    check_digest: bool,
    digests: Mapping[str, str] | None,
) -> tuple[dict[str, Target], Target | None]:
    """The archives by key; and the train archive, if only its class tars are to be fetched."""
    layout = replace(layout, raw=None)  # that folder is read-only
    digests = digests or {}
    targets: dict[str, Target] = {}
    for key in only:
        if key not in ARCHIVES:
            known_keys = ", ".join(ARCHIVES)
            raise UsageError(f"unknown archive {key!r}", f"expected one or more of {known_keys}")
        targets[key] = _target(layout, ARCHIVES[key], check_digest, digests.get(key))
    train = targets.get(facts.TRAIN)
    if train is None or part.is_whole or train.path.exists():
        return targets, None
    del targets[facts.TRAIN]
    return targets, train


def _target(
    layout: Layout, archive: OfficialArchive, check_digest: bool, digest: str | None
) -> Target:
    if not check_digest:
        return Target(layout, archive.filename, None, {})
    if digest is not None:
        return Target(layout, archive.filename, None, {"md5": digest})
    digests = {"md5": archive.md5}
    if archive.sha256:
        digests["sha256"] = archive.sha256
    return Target(layout, archive.filename, archive.size, digests)


def _summary(
    targets: Collection[Target],
    missing: Collection[Target],
    size: int,
    fetched: tuple[str, ...] = (),
    present: tuple[str, ...] = (),
) -> DownloadSummary:
    """The summary of these files, and of other names that were ``fetched`` or are ``present``."""
    files_fetched = tuple(target.filename for target in targets if target in missing)
    files_present = tuple(target.filename for target in targets if target not in missing)
    return DownloadSummary((*files_fetched, *fetched), (*files_present, *present), size)


def _fetch(
    session: Session, url: str, target: Target, manner: Manner, remote: Remote | None = None
) -> None:
    """Fetch one file, check it, and give it its final name."""
    remote = remote or _inspect(session, url, target, manner.pace)
    fetched = fetch(session, url, target.partial, manner, remote=remote, digests=target.digests)
    fault = ""
    if not target.digests:
        fault = fault_of(target.partial, target.filename)
    target.place(fetched, fault)


def _inspect(
    session: Session, url: str, target: Target, pace: Pace, *, was_seen: bool = False
) -> Remote:
    """Ask the server about the file, and check as early as possible that it is the expected one."""
    has_digest = bool(target.digests)
    remote = inspect(session, url, pace, was_seen=was_seen, size=target.size, has_digest=has_digest)
    if target.size not in (None, remote.total):
        host = host_of(url)
        raise InputError(
            f"{host} has a different {target.filename}",
            f"expected {target.size:,} bytes, the server has {remote.total:,}",
            "it was not fetched; name a server that has the original archive: --base-url URL",
        )
    if not has_digest:
        file = RemoteFile(session, url, remote, pace)
        look_at(file, target.filename)
    return remote


def all_come(site: Site, part: Part) -> str:
    """The note for a user who wants a part of a copy."""
    classes = number_of(len(part.labels), "class", "classes")
    return (
        f"{site.name} offers no single classes: all 1,000 are fetched for the {classes} of "
        f"{part.name}"
    )


def _announce(
    incoming: Sequence[Incoming], layout: Layout, before: Before | None, progress: Progress
) -> None:
    """Report the incoming size and the free space, if it fits; or call ``before`` instead."""
    if before is not None:
        before(incoming)
        return
    needs = [files.need(layout) for files in incoming]
    refuse_lack(needs)
    names = listed(files.name for files in incoming)
    for room in rooms_for(needs):
        size = size_text(room.size)
        free = size_text(room.free)
        progress.note(f"{names}: {size} to fetch, {free} are free")


def _incoming(target: Target, remote: Remote) -> Incoming:
    to_come = target.to_come(remote)
    return Incoming(target.filename, remote.total, to_come)


def _incoming_classes(classes: RemoteClasses, wnids: Sequence[str], layout: Layout) -> Incoming:
    (name,) = _tars(wnids)
    to_come = classes.bytes_to_come(layout)
    return Incoming(name, classes.size, to_come, len(wnids))


def _all_of(site: Site, missing: Mapping[Target, Offer]) -> Incoming:
    """The files of a copy as one entry: there may be hundreds."""
    files = []
    for target, offer in missing.items():
        url = bare_url(offer.url)
        remote = Remote(url, offer.size, None, None)
        files.append(_incoming(target, remote))
    if len(files) == 1:
        return files[0]
    count = number_of(len(files), "file")
    size = sum(file.size for file in files)
    to_come = sum(file.to_come for file in files)
    return Incoming(f"{count} of {site.name}", size, to_come, len(files))
