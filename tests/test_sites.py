"""Kaggle and Hugging Face as places to fetch from:
who asks, which files, signed addresses, what a refusal means.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import pickle
import random
import re
import struct
import subprocess
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from stand_ins import BASIC, CANARY, COMMITS, KEY, TOKEN, USERNAME, StandIn, entry, stand_in

from imagenet_prep.errors import InputError, NetworkError, PrepError, UsageError
from imagenet_prep.escaping import CommandLine, rerun
from imagenet_prep.fetch.credentials import Credentials, Token
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.providers import (
    ACCESS_URL,
    COMPETITION,
    RULES_URL,
    HuggingFaceSite,
    KaggleSite,
    digests_of,
)
from imagenet_prep.fetch.site_logins import find_login, find_token
from imagenet_prep.hints import parts_of
from imagenet_prep.model import Silent
from imagenet_prep.stages.download import DownloadOptions, download_copy
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import size_text

PACE = Pace(tries=3, first_wait=0.001, longest_wait=0.01, stall=5, segment=50_000)
WHO = Token(TOKEN, "HF_TOKEN")
VARIABLES = (
    "KAGGLE_API_TOKEN",
    "KAGGLE_USERNAME",
    "KAGGLE_KEY",
    "KAGGLE_CONFIG_DIR",
    "XDG_CACHE_HOME",
)
VARIABLES += ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME")


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("ILSVRC/ImageSets/CLS-LOC/val.txt", random.Random(1).randbytes(300_000))
    return file.getvalue()


def _parquet(seed: int) -> bytes:
    body = random.Random(seed).randbytes(80_000 + seed)
    return b"PAR1" + body + struct.pack("<I", 100) + b"PAR1"


ZIP = {f"{COMPETITION}.zip": _zip()}
PARQUET = {
    **{f"train-{number:05d}-of-00003.parquet": _parquet(number) for number in range(3)},
    **{f"validation-{number:05d}-of-00002.parquet": _parquet(9 + number) for number in range(2)},
}
OTHERS = {f"test-{number:05d}-of-00002.parquet": _parquet(20 + number) for number in range(2)}


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Nobody's secrets are in the environment or the home folder."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return monkeypatch


@pytest.fixture
def kaggle(tmp_path: Path) -> Iterator[StandIn]:
    """A stand-in of Kaggle."""
    with stand_in("kaggle", tmp_path / "served", ZIP) as site:
        yield site


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[StandIn]:
    """A stand-in of the Hugging Face Hub."""
    with stand_in("huggingface", tmp_path / "served", PARQUET | OTHERS) as site:
        yield site


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A DATA_DIR that doesn't exist yet."""
    return Layout(tmp_path / "data")


class Seen(Silent):
    """A Progress that remembers the labels of its bars."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Remember a bar."""
        self.labels.append(label)


def _fetch(layout: Layout, site: KaggleSite | HuggingFaceSite, **options: Any) -> Seen:
    progress = Seen()
    rest = {key: options.pop(key) for key in ("part", "before") if key in options}
    download_copy(layout, site, DownloadOptions(pace=PACE, **options), progress=progress, **rest)
    return progress


def _raw(layout: Layout) -> dict[str, bytes]:
    if not layout.own_raw_dir.exists():
        return {}
    paths = existing(layout.own_raw_dir, "*")
    return {path.name: path.read_bytes() for path in paths if path.suffix in (".zip", ".parquet")}


def _told(error: PrepError, status: int, *words: str) -> None:
    assert error.exit_code == status
    assert len(str(error).splitlines()) == 3
    for word in words:
        assert word in str(error)
    assert CANARY not in "".join(traceback.format_exception(error))


def _refused(layout: Layout, site: KaggleSite | HuggingFaceSite, status: int, *words: str) -> None:
    with pytest.raises(PrepError) as caught:
        _fetch(layout, site)
    _told(caught.value, status, *words)


def _listed(hub: StandIn) -> list[dict[str, Any]]:
    return [entry(file) for file in existing(hub.storage.folder, "*")]


def _no_secret_went_abroad(site: StandIn) -> None:
    for asked in site.storage.asked:
        assert not {"authorization", "cookie"} & {name.lower() for name in asked.headers}
        assert TOKEN not in str(asked)
        assert KEY not in str(asked)


# who asks -----------------------------------------------------------------------------------------


def _kaggle_folder(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_json", ".json")).write_text(text)


def test_kaggle_knows_us_by_what_its_own_tools_use(
    tmp_path: Path, nobody: pytest.MonkeyPatch
) -> None:
    """The token before the pair, the environment before files of the same kind;
    each alone is enough.
    """
    home = tmp_path / "home" / ".kaggle"
    assert find_login() is None
    _kaggle_folder(home, kaggle_json=json.dumps({"username": USERNAME, "key": KEY}))
    assert find_login() == Credentials(USERNAME, KEY)
    nobody.setenv("KAGGLE_USERNAME", "bob")
    assert find_login() == Credentials(USERNAME, KEY)
    nobody.setenv("KAGGLE_KEY", "bobs")
    assert find_login() == Credentials("bob", "bobs")
    _kaggle_folder(home, access_token=f" {TOKEN}\n")
    assert find_login() == Token(TOKEN, str(home / "access_token"))
    (tmp_path / "elsewhere").write_text(f"{TOKEN}-file\n")
    nobody.setenv("KAGGLE_API_TOKEN", str(tmp_path / "elsewhere"))
    assert find_login() == Token(f"{TOKEN}-file", str(tmp_path / "elsewhere"))
    nobody.setenv("KAGGLE_API_TOKEN", f"{TOKEN}-value")
    assert find_login() == Token(f"{TOKEN}-value", "KAGGLE_API_TOKEN")
    nobody.delenv("KAGGLE_API_TOKEN")
    other = tmp_path / "config"
    nobody.setenv("KAGGLE_CONFIG_DIR", str(other))
    _kaggle_folder(other, access_token="another")
    assert find_login() == Token("another", str(other / "access_token"))


def test_hugging_face_knows_us_by_what_its_own_tools_use(
    tmp_path: Path, nobody: pytest.MonkeyPatch
) -> None:
    """The environment before files; HF_TOKEN_PATH before HF_HOME before the cache."""
    assert find_token() is None
    places = {
        "": tmp_path / "home" / ".cache" / "huggingface" / "token",
        "XDG_CACHE_HOME": tmp_path / "cache" / "huggingface" / "token",
        "HF_HOME": tmp_path / "hf" / "token",
        "HF_TOKEN_PATH": tmp_path / "the-token",
    }
    values = {"XDG_CACHE_HOME": "cache", "HF_HOME": "hf", "HF_TOKEN_PATH": "the-token"}
    for variable, path in places.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{variable}-token\n")
        if variable:
            nobody.setenv(variable, str(tmp_path / values[variable]))
        assert find_token() == Token(f"{variable}-token", str(path))
    for variable in ("HUGGING_FACE_HUB_TOKEN", "HF_TOKEN"):
        nobody.setenv(variable, f" {variable} ")
        assert find_token() == Token(variable, variable)


@pytest.mark.parametrize("content", [f"{CANARY}é", f"{CANARY}\nX-Other: 1"])
def test_what_is_no_token_is_said_to_be_none(
    tmp_path: Path, nobody: pytest.MonkeyPatch, content: str
) -> None:
    """A file of something else is wrong usage, and what it holds is not shown."""
    for name, find in (("KAGGLE_API_TOKEN", find_login), ("HF_TOKEN_PATH", find_token)):
        path = tmp_path / "secrets"
        path.write_text(content)
        nobody.setenv(name, str(path))
        with pytest.raises(UsageError) as caught:
            find()
        _told(caught.value, 2, str(path))


@pytest.mark.parametrize("content", ["", "{", '{"username": "a", "key": 1}', f'"{CANARY}"'])
def test_a_kaggle_json_that_is_none(tmp_path: Path, content: str) -> None:
    """One that holds no credentials is named, and what it holds is not shown;
    an empty one is as good as none.
    """
    _kaggle_folder(tmp_path / "home" / ".kaggle", kaggle_json=content)
    if not content:
        assert find_login() is None
        return
    with pytest.raises(UsageError) as caught:
        find_login()
    _told(caught.value, 2, "kaggle.json")


def test_a_token_is_kept_close() -> None:
    """No repr shows it, and no pickle takes it to another process."""
    assert CANARY not in repr(WHO) + str([WHO]) + repr(KaggleSite(login=WHO)) + repr(
        HuggingFaceSite(login=WHO)
    )
    with pytest.raises(TypeError) as caught:
        pickle.dumps(WHO)
    assert CANARY not in str(caught.value)


# Kaggle -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "connections", "uses"),
    [(WHO, 1, 1), (Credentials(USERNAME, KEY), 4, 3), (WHO, 4, 1000)],
    ids=["token", "key", "once"],
)
def test_kaggle(kaggle: StandIn, layout: Layout, who: Any, connections: int, uses: int) -> None:
    """The zip comes whole; Kaggle, and nobody else, learns who asks,
    and only if an address has expired.
    """
    kaggle.storage.uses = uses
    progress = _fetch(layout, KaggleSite(kaggle.url, who), connections=connections)
    assert _raw(layout) == ZIP
    assert {asked.headers["Authorization"] for asked in kaggle.home.asked} == {
        f"Bearer {TOKEN}" if isinstance(who, Token) else BASIC
    }
    _no_secret_went_abroad(kaggle)
    assert uses < 1000 or len(kaggle.home.asked) == 1
    assert uses > 1 or len(kaggle.home.asked) > 5
    assert f"Kaggle: 1 file, {size_text(len(ZIP[f'{COMPETITION}.zip']))} to fetch" in progress.notes


@pytest.mark.parametrize("hashes", [("crc32c",), ("crc32c", "md5"), ()])
def test_what_storage_tells_of_the_zip_is_checked(
    kaggle: StandIn, layout: Layout, hashes: tuple[str, ...]
) -> None:
    """By MD5 if it is told, else by CRC32C; a file that was checked is not hashed again."""
    kaggle.storage.hashes = hashes
    progress = _fetch(layout, KaggleSite(kaggle.url, WHO))
    content = ZIP[f"{COMPETITION}.zip"]
    checked = json.loads(layout.checked_path.read_text())[f"{COMPETITION}.zip"]
    assert checked["md5"] == (hashlib.md5(content).hexdigest() if "md5" in hashes else None)
    assert ("crc32c" in checked) == (hashes == ("crc32c",))
    assert any("checking" in label for label in progress.labels) == bool(hashes)
    assert _fetch(layout, KaggleSite(kaggle.url, WHO)).labels == []


@pytest.mark.parametrize(("hashes", "words"), [("md5", "MD5"), ("crc32c", "CRC32C")])
def test_a_zip_with_another_digest_is_set_aside(
    kaggle: StandIn, layout: Layout, hashes: str, words: str
) -> None:
    """What arrives otherwise than storage says gets no name."""
    told = base64.b64encode(bytes(16 if hashes == "md5" else 4)).decode()
    kaggle.storage.extra = {"x-goog-hash": f"{hashes}={told}"}
    _refused(layout, KaggleSite(kaggle.url, WHO), 4, words, "not the expected file", "0" * 8)
    assert _raw(layout) == {}


def test_without_a_digest_the_zip_must_look_like_one(kaggle: StandIn, layout: Layout) -> None:
    """A zip that is cut, or something else, is refused before it is fetched."""
    path = kaggle.storage.folder / f"{COMPETITION}.zip"
    for content in (path.read_bytes()[:-100], b"PAR1" * 50_000):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"{COMPETITION}.zip"):
            _fetch(layout, KaggleSite(kaggle.url, WHO))
    assert not layout.own_raw_dir.exists()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("crc32c=n03x6A=", {}),
        ("md5", {}),
        ("sha1=n03x6A==, crc32c=n03x6A==", {"crc32c": "9f4df1e8"}),
    ],
)
def test_digests_of(header: str, expected: dict[str, str]) -> None:
    """Base64 of the bytes of each; what makes no sense counts for nothing."""
    assert digests_of(header) == expected


@pytest.mark.parametrize(
    ("who", "has_access", "words"),
    [
        (
            None,
            True,
            ["KAGGLE_API_TOKEN", "KAGGLE_USERNAME", RULES_URL, "https://www.kaggle.com/settings"],
        ),
        (
            Token(f"{CANARY}-wrong", "KAGGLE_API_TOKEN"),
            True,
            ["401", "https://www.kaggle.com/settings"],
        ),
        (
            Credentials(USERNAME, f"{CANARY}-wrong"),
            True,
            ["401", "https://www.kaggle.com/settings"],
        ),
        (WHO, False, ["403", "accept the rules", RULES_URL]),
    ],
    ids=["nobody", "wrong token", "wrong key", "rules"],
)
def test_kaggle_refuses(
    kaggle: StandIn, layout: Layout, who: Any, has_access: bool, words: list[str]
) -> None:
    """What to do is said with its address; nothing is written, and it is asked once."""
    kaggle.home.has_access = has_access
    _refused(layout, KaggleSite(kaggle.url, who), 6, *words)
    assert not layout.own_raw_dir.exists()
    assert len(kaggle.home.asked) == 1


# Hugging Face -------------------------------------------------------------------------------------


def test_hugging_face(hub: StandIn, layout: Layout) -> None:
    """The files of train and validation come, each checked by its SHA-256;
    those of test stay where they are.
    """
    progress = _fetch(layout, HuggingFaceSite(hub.url, WHO), connections=4)
    assert _raw(layout) == PARQUET
    _no_secret_went_abroad(hub)
    assert {asked.headers["Authorization"] for asked in hub.home.asked} == {f"Bearer {TOKEN}"}
    checked = json.loads(layout.checked_path.read_text())
    assert {name: checked[name]["sha256"] for name in PARQUET} == {
        name: hashlib.sha256(content).hexdigest() for name, content in PARQUET.items()
    }
    size = sum(map(len, PARQUET.values()))
    assert progress.notes == [f"Hugging Face: 5 files, {size_text(size)} to fetch"]
    assert progress.labels[0] == "train-00000-of-00003.parquet"
    hub.storage.asked.clear()
    assert _fetch(layout, HuggingFaceSite(hub.url, WHO)).labels == []
    assert hub.storage.asked == []


def test_hugging_face_goes_on_where_it_was(hub: StandIn, layout: Layout) -> None:
    """A later run takes the same commit though there is a newer one,
    and fetches what is missing.
    """

    class Stops(Seen):
        def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
            super().begin(label, total, unit, done)
            if "validation" in label:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_copy(
            layout, HuggingFaceSite(hub.url, WHO), DownloadOptions(pace=PACE), progress=Stops()
        )
    assert set(_raw(layout)) == {name for name in PARQUET if "train" in name}
    hub.home.commit = COMMITS[1]
    hub.storage.asked.clear()
    hub.home.asked.clear()
    progress = _fetch(layout, HuggingFaceSite(hub.url, WHO))
    assert _raw(layout) == PARQUET
    assert progress.labels[0] == "validation-00000-of-00002.parquet"
    assert all("validation" in asked.path for asked in hub.storage.asked)
    assert not any("revision" in asked.path or COMMITS[1] in asked.path for asked in hub.home.asked)


@pytest.mark.parametrize(
    ("who", "has_access", "words"),
    [
        (
            None,
            True,
            ["found no token", ACCESS_URL, "HF_TOKEN", "https://huggingface.co/settings/tokens"],
        ),
        (
            Token(f"{CANARY}-wrong", "HF_TOKEN"),
            True,
            ["401", ACCESS_URL, "HF_TOKEN", "access to ILSVRC/imagenet-1k"],
        ),
        (WHO, False, ["403", ACCESS_URL, "HF_TOKEN"]),
    ],
    ids=["nobody", "wrong", "gated"],
)
def test_hugging_face_refuses(
    hub: StandIn, layout: Layout, who: Token | None, has_access: bool, words: list[str]
) -> None:
    """Where to ask for access is said; no file is written,
    and nothing is asked for a second time.
    """
    hub.home.has_access = has_access
    _refused(layout, HuggingFaceSite(hub.url, who), 6, *words)
    assert _raw(layout) == {}
    refused = (
        "/revision/" if who and who is not WHO else "/resolve/"
    )  # the Hub refuses every request of a wrong token
    assert len([asked for asked in hub.home.asked if refused in asked.path]) == 1


def test_a_parquet_file_with_another_digest_is_set_aside(hub: StandIn, layout: Layout) -> None:
    """One byte of a file is another than at the commit."""
    name = "train-00001-of-00003.parquet"
    path = hub.storage.folder / name
    hub.home.changes["tree"] = _listed(hub)
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    _refused(layout, HuggingFaceSite(hub.url, WHO), 4, name, "SHA-256", "not the expected file")
    assert set(_raw(layout)) == {"train-00000-of-00003.parquet"}


def test_a_parquet_file_of_another_size_is_not_fetched(hub: StandIn, layout: Layout) -> None:
    """What the storage has is not what the commit says; the file before it was fetched."""
    hub.home.changes["tree"] = _listed(hub)
    with (hub.storage.folder / "train-00001-of-00003.parquet").open("ab") as file:
        file.write(b"more")
    _refused(
        layout,
        HuggingFaceSite(hub.url, WHO),
        4,
        "different train-00001-of-00003.parquet",
        "80,013",
        "80,017",
        "it was not fetched",
    )
    assert set(_raw(layout)) == {"train-00000-of-00003.parquet"}


def test_without_a_digest_parquet_must_look_like_it(hub: StandIn, layout: Layout) -> None:
    """A file that is not in the large storage has no SHA-256 told, or none that is one."""
    name = "validation-00001-of-00002.parquet"
    entries = _listed(hub)
    for each, oid in zip(entries, [None, "x" * 64] * len(entries), strict=False):
        each["lfs"]["oid"] = oid
    hub.home.changes["tree"] = entries
    (hub.storage.folder / name).write_bytes(b"PAR1" + bytes(len(PARQUET[name]) - 8) + b"1RAP")
    with pytest.raises(InputError, match=name) as caught:
        _fetch(layout, HuggingFaceSite(hub.url, WHO))
    assert name not in _raw(layout)
    assert _raw(layout)  # files before it were fetched, and are kept
    assert "nothing was fetched" not in caught.value.hint
    (hub.storage.folder / name).write_bytes(PARQUET[name])
    _fetch(layout, HuggingFaceSite(hub.url, WHO))
    assert _raw(layout) == PARQUET


def test_a_commit_that_lacks_files_is_another_copy(
    hub: StandIn, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier revision had no parquet files;
    one that lacks some is refused before anything is fetched.
    """
    gone = "train-00001-of-00003.parquet"
    (hub.storage.folder / gone).unlink()
    kept = layout.raw_partial_dir / "huggingface.json"
    _refused(layout, HuggingFaceSite(hub.url, WHO), 4, COMMITS[0][:12], gone, "another copy with")
    monkeypatch.setattr("sys.argv", ["imagenet-prep", "download", "d"])
    with pytest.raises(InputError) as caught:  # an earlier run chose the commit
        _fetch(layout, HuggingFaceSite(hub.url, WHO))
    remove, again = [part for part in parts_of(caught.value.hint) if isinstance(part, CommandLine)]
    assert again == rerun()
    subprocess.run(["bash", "-c", remove], check=True)
    assert not kept.exists()
    assert hub.storage.asked == []


def test_files_of_two_numberings_are_named(hub: StandIn, layout: Layout) -> None:
    """A commit that has all files of one numbering, and more: those are what is wrong."""
    entries = _listed(hub)
    extra = "data/train-00000-of-00002.parquet"
    hub.home.changes["tree"] = [*entries, {**entries[0], "path": extra}]
    with pytest.raises(InputError) as caught:
        _fetch(layout, HuggingFaceSite(hub.url, WHO))
    assert caught.value.detail == (
        "expected 5 parquet files; not expected: train-00000-of-00002.parquet"
    )
    assert "rm " not in caught.value.hint  # no earlier run chose the commit


@pytest.mark.parametrize(
    ("gone", "example"),
    [
        (("train", "validation"), "data/train-00000-of-00294.parquet"),
        (("validation",), "data/validation-00000-of-00014.parquet"),
    ],
)
def test_a_commit_without_files_of_such_names(
    hub: StandIn, layout: Layout, gone: tuple[str, ...], example: str
) -> None:
    """Its files have other names: none of theirs is called missing, since no file says how many
    there are.
    """
    entries = _listed(hub)
    for each in entries:
        each["path"] = re.sub(rf"data/({'|'.join(gone)})-", r"data/new_\1-", each["path"])
    hub.home.changes["tree"] = entries
    with pytest.raises(InputError) as caught:
        _fetch(layout, HuggingFaceSite(hub.url, WHO))
    assert caught.value.detail == f"expected files such as {example}, found none"
    assert "--source kaggle" in caught.value.hint


STRANGE: list[tuple[str, Any]] = [
    ("revision", b"{"),
    ("revision", b"[" * 200_000),
    ("revision", []),
    ("revision", {"sha": "../../" + "a" * 34}),
    ("tree", "text"),
    ("tree", [{"path": "data/train-00000-of-00001.parquet", "size": "1"}]),
]


@pytest.mark.parametrize(("what", "answer"), STRANGE, ids=str)
def test_answers_that_make_no_sense(hub: StandIn, layout: Layout, what: str, answer: Any) -> None:
    """They are network trouble that names the server, never a bug."""
    hub.home.changes[what] = answer
    _refused(layout, HuggingFaceSite(hub.url, WHO), 5, "127.0.0.1", "expected")
    assert _raw(layout) == {}
    assert any("/tree/" in asked.path for asked in hub.home.asked) == (what == "tree")


def test_a_list_without_end(hub: StandIn, layout: Layout) -> None:
    """A list whose pages never end is given up."""
    hub.home.page_size = 0
    with pytest.raises(NetworkError):
        _fetch(layout, HuggingFaceSite(hub.url, WHO))
    assert len(hub.home.asked) < 200


def test_all_must_fit_before_any_is_fetched(hub: StandIn, layout: Layout) -> None:
    """The files together need more than the disk has."""
    entries = _listed(hub)
    for each in entries:
        each["size"] = 5 << 40
    hub.home.changes["tree"] = entries
    _refused(layout, HuggingFaceSite(hub.url, WHO), 7, "27.5 TB", "free")
    assert hub.storage.asked == []


def test_a_file_put_there_by_hand_is_checked(hub: StandIn, layout: Layout) -> None:
    """It is kept if its SHA-256 is right; another one of that name is never overwritten."""
    layout.own_raw_dir.mkdir(parents=True)
    names = sorted(PARQUET)
    (layout.own_raw_dir / names[0]).write_bytes(PARQUET[names[0]])
    progress = _fetch(layout, HuggingFaceSite(hub.url, WHO))
    assert progress.labels[0] == f"checking {names[0]}"
    assert not any(names[0] in asked.path for asked in hub.storage.asked)
    path = layout.own_raw_dir / names[1]
    path.write_bytes(PARQUET[names[1]][:-9] + b"x" + PARQUET[names[1]][-8:])
    _refused(
        layout, HuggingFaceSite(hub.url, WHO), 4, str(path), "is not the expected file", "SHA-256"
    )
