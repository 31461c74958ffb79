"""Stand-ins of Kaggle's and the Hugging Face Hub's API, and of the storage behind them,
with its signed addresses.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from file_server import FileHandler, FileServer, run_server

from imagenet_prep.fetch.providers import COMPETITION, DATASET
from imagenet_prep.tfrecord import crc32c

CANARY = "canary-27182818"
TOKEN = f"{CANARY}-token"
USERNAME, KEY = "ada", f"{CANARY}-key"
SIGNATURE = f"{CANARY}-signature"
BASIC = "Basic " + base64.b64encode(f"{USERNAME}:{KEY}".encode()).decode()
COMMITS = ("a" * 40, "b" * 40)


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]


class Storage(FileServer):
    """Hands out files to whoever has a signed address, which is good for a few requests only.

    Args:
        folder: where the files lie.
        hashes: the digests that x-goog-hash tells.
        uses: how many requests an address is good for.
    """

    is_open = True

    def __init__(self, folder: Path) -> None:
        super().__init__(_StorageHandler, folder, "", "")
        self.asked: list[Asked] = []
        self.hashes: tuple[str, ...] = ()
        self.extra: dict[str, str] = {}
        self.uses = 1
        self.lock = threading.Lock()
        self.left: dict[str, int] = {}

    def sign(self, name: str) -> str:
        """A new address of a file."""
        with self.lock:
            signature = f"{SIGNATURE}-{len(self.left)}"
            self.left[signature] = self.uses
        return f"{self.url}{name}?Expires=1&Signature={signature}"


class _StorageHandler(FileHandler):
    server: Storage

    def answer(self) -> None:
        """Send a file by its signed address."""
        signature = parse_qs(urlsplit(self.path).query).get("Signature", [""])[0]
        with self.server.lock:
            self.server.asked.append(Asked(self.command, self.path, dict(self.headers.items())))
            left = self.server.left.get(signature, 0)
            self.server.left[signature] = left - 1
        if left <= 0:
            self.send_nothing(403)  # as storage answers where an address has expired
        else:
            super().answer()

    def send_part(
        self, file: BinaryIO, start: int, stop: int, status: int, headers: dict[str, str]
    ) -> None:
        """Send a part, with the digests of the whole."""
        path = self.find_file()
        assert path is not None
        content = path.read_bytes()
        digests = {
            "md5": hashlib.md5(content).digest(),
            "crc32c": crc32c(content).to_bytes(4, "big"),
        }
        told = ",".join(
            f"{name}={base64.b64encode(digests[name]).decode()}" for name in self.server.hashes
        )
        headers = {**headers, **({"x-goog-hash": told} if told else {}), **self.server.extra}
        super().send_part(file, start, stop, status, headers)


class Home(FileServer):
    """The API of a site: says who may have what, and redirects to the storage."""

    def __init__(self, handler: type[FileHandler], storage: Storage) -> None:
        super().__init__(handler, storage.folder, USERNAME, KEY)
        self.storage = storage
        self.asked: list[Asked] = []
        self.has_access = True
        self.commit = COMMITS[0]
        self.page_size = 4
        self.changes: dict[str, Any] = {}
        self.lock = threading.Lock()


class _HomeHandler(FileHandler):
    server: Home

    def answer(self) -> None:
        with self.server.lock:
            self.server.asked.append(Asked(self.command, self.path, dict(self.headers.items())))
        self.reply(urlsplit(self.path).path)

    def reply(self, path: str) -> None:
        raise NotImplementedError

    def is_known(self) -> bool:
        return self.headers.get("Authorization") in (f"Bearer {TOKEN}", BASIC)

    def send_json(
        self, value: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        more = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        self.send_head(status, {**more, **(headers or {})})
        self.wfile.write(content)


class _KaggleHandler(_HomeHandler):
    def reply(self, path: str) -> None:
        """Redirect to the zip, for those who accepted the rules."""
        if path != f"/api/v1/competitions/data/download-all/{COMPETITION}":
            self.send_nothing(404)
        elif not self.is_known():
            self.send_json({"code": 401, "message": "Unauthenticated"}, 401)
        elif not self.server.has_access:
            self.send_json(
                {"code": 403, "message": "You must accept this competition's rules"}, 403
            )
        else:
            self.send_nothing(302, {"Location": self.server.storage.sign(f"{COMPETITION}.zip")})


class _HubHandler(_HomeHandler):
    def reply(self, path: str) -> None:
        """Tell the newest commit and its files; redirect to a file, for those who may have it."""
        resolve = f"/datasets/{DATASET}/resolve/"
        if "Authorization" in self.headers and not self.is_known():
            self.send_nothing(401)
        elif path == f"/api/datasets/{DATASET}/revision/main":
            self.send_json(
                self.server.changes.get("revision", {"sha": self.server.commit, "gated": "auto"})
            )
        elif path in {f"/api/datasets/{DATASET}/tree/{commit}/data" for commit in COMMITS}:
            self._send_tree(path)
        elif not path.startswith(resolve) or path.split("/")[-3] not in COMMITS:
            self.send_nothing(404)
        elif not (self.is_known() and self.server.has_access):
            status = 403 if self.is_known() else 401
            self.send_json(
                {"error": f"Access to dataset {DATASET} is restricted."},
                status,
                {"X-Error-Code": "GatedRepo"},
            )
        else:
            self.send_nothing(302, {"Location": self.server.storage.sign(path.rpartition("/")[2])})

    def _send_tree(self, path: str) -> None:
        if "tree" in self.server.changes:
            self.send_json(self.server.changes["tree"])
            return
        files = sorted(self.server.folder.iterdir())
        first = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        shown = files[first : first + self.server.page_size]
        behind = first + len(shown)
        link = (
            {"Link": f'<{self.server.url[:-1]}{path}?cursor={behind}>; rel="next"'}
            if behind < len(files)
            else {}
        )
        self.send_json([entry(file) for file in shown], headers=link)


def entry(file: Path) -> dict[str, Any]:
    """A file in the list of a commit."""
    content = file.read_bytes()
    lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return {
        "type": "file",
        "oid": "0" * 40,
        "size": len(content),
        "lfs": lfs,
        "path": f"data/{file.name}",
    }


@dataclass
class StandIn:
    """A site and its storage, each at a port of its own."""

    home: Home
    storage: Storage
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The site's address."""
        return self.home.url

    def parts(self) -> list[Asked]:
        """The requests for files, beyond the probes."""
        return [
            asked for asked in self.storage.asked if asked.headers.get("Range") != "bytes=0-1023"
        ]


@contextmanager
def stand_in(kind: str, folder: Path, files: dict[str, bytes]) -> Iterator[StandIn]:
    """A running stand-in of "kaggle" or "huggingface" that has these files."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    storage = Storage(folder)
    home = Home(_KaggleHandler if kind == "kaggle" else _HubHandler, storage)
    with ExitStack() as stack:
        for server in (storage, home):
            stack.enter_context(run_server(server))
        yield StandIn(home, storage, files)
