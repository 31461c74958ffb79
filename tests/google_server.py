"""A store on this machine that speaks the XML API of Google Cloud Storage, as far as a client that
reads, lists and writes objects uses it; its objects are in memory.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEY_ID = "key-of-tests"
PAGE = 7
"""Names on a page of a list: small, so that lists have several."""


@dataclass
class GoogleServer:
    """``objects`` by bucket and key, ``uploads`` that are not finished, and the requests so far."""

    port: int = 0
    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    generation: int = 0

    def account(self, folder: Path, key_id: str = KEY_ID) -> Path:
        """The file of a service account that leads here; the server knows KEY_ID alone."""
        command = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        key = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        path = folder / f"{key_id}.json"
        content = {
            "type": "service_account",
            "private_key": key,
            "private_key_id": key_id,
            "client_email": "tests@example.com",
            "gcs_base_url": f"http://127.0.0.1:{self.port}",
        }
        path.write_text(json.dumps(content))
        return path

    def put(self, name: str, content: bytes) -> None:
        """Keep an object, as a new generation."""
        self.generation += 1
        self.objects[name] = (content, self.generation)


@contextlib.contextmanager
def run_google_server() -> Iterator[GoogleServer]:
    """Run the server."""
    server = GoogleServer()

    class Handler(_Handler):
        store = server

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        server.port = listening.server_port
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: GoogleServer

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(self.path)
        name = unquote(parts.path).lstrip("/")
        query = {
            key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()
        }
        self.store.seen.append((self.command, self.path))
        if not self._is_known():
            self._refuse(401, "AuthenticationRequired")
            return
        with self.store.lock:
            if "list-type" in query:
                self._list(name, query)
            elif "uploads" in query or "uploadId" in query:
                self._upload(name, query, content)
            elif self.command in ("GET", "HEAD"):
                self._read(name)
            elif self.command == "PUT":
                self._write(name, content)
            else:
                is_there = self.store.objects.pop(name, None) is not None
                self._answer(204) if is_there else self._refuse(404, "NoSuchKey")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - the names that http.server asks for

    def _is_known(self) -> bool:
        """Whether the token was signed with the known key, by the name in its header."""
        header = self.headers.get("Authorization", "").removeprefix("Bearer ").partition(".")[0]
        with contextlib.suppress(ValueError):
            padded = header + "=" * (-len(header) % 4)
            return bool(json.loads(base64.urlsafe_b64decode(padded))["kid"] == KEY_ID)
        return False

    def _read(self, name: str) -> None:
        if name not in self.store.objects:
            self._refuse(404, "NoSuchKey")
            return
        content, generation = self.store.objects[name]
        headers = _headers_of(content, generation)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self._answer(200, content, headers)
            return
        start = int(wanted[1])
        stop = min(int(wanted[2]) + 1 if wanted[2] else len(content), len(content))
        if start >= len(content):
            self._refuse(416, "InvalidRange")
            return
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
        self._answer(206, content[start:stop], headers)

    def _write(self, name: str, content: bytes) -> None:
        is_new = self.headers.get("x-goog-if-generation-match") == "0"
        if is_new and name in self.store.objects:
            self._refuse(412, "PreconditionFailed")
            return
        self.store.put(name, content)
        self._answer(200, headers=_headers_of(*self.store.objects[name]))

    def _upload(self, name: str, query: dict[str, str], content: bytes) -> None:
        uploads, upload = self.store.uploads, query.get("uploadId", "")
        if "uploads" in query:
            upload = f"upload-{len(self.store.seen)}"
            uploads[upload] = {}
            self._answer(200, _tag("InitiateMultipartUploadResult", _tag("UploadId", upload)))
        elif upload not in uploads:
            self._refuse(404, "NoSuchUpload")
        elif self.command == "PUT":
            uploads[upload][int(query["partNumber"])] = content
            self._answer(200, headers={"ETag": _digest(content)})
        elif self.command == "DELETE":
            del uploads[upload]
            self._answer(204)
        else:
            held = uploads.pop(upload)
            numbers = map(int, re.findall(rb"<PartNumber>(\d+)</PartNumber>", content))
            self.store.put(name, b"".join(held[number] for number in numbers))
            whole, generation = self.store.objects[name]
            body = _tag("CompleteMultipartUploadResult", _tag("ETag", _digest(whole)))
            self._answer(200, body, {"x-goog-generation": str(generation)})

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        lead, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys = [
            name.removeprefix(f"{bucket}/")
            for name in self.store.objects
            if name.startswith(f"{bucket}/{lead}")
        ]
        folders = {
            lead + key[len(lead) :].partition(delimiter)[0] + delimiter
            for key in keys
            if delimiter and delimiter in key[len(lead) :]
        }
        objects = [key for key in keys if not delimiter or delimiter not in key[len(lead) :]]
        after = query.get("continuation-token", "")
        listed = sorted(entry for entry in {*folders, *objects} if entry > after)
        page = listed[:PAGE]
        body = "".join(self._entry(bucket, entry, entry in folders) for entry in page)
        if len(listed) > PAGE:
            body += _tag("NextContinuationToken", page[-1])
        self._answer(200, _tag("ListBucketResult", body))

    def _entry(self, bucket: str, key: str, is_folder: bool) -> str:
        if is_folder:
            return _tag("CommonPrefixes", _tag("Prefix", escape(key)))
        content, _ = self.store.objects[f"{bucket}/{key}"]
        facts = _tag("Key", escape(key)) + _tag("Size", str(len(content)))
        facts += _tag("LastModified", "2026-01-01T00:00:00.000Z") + _tag("ETag", _digest(content))
        return _tag("Contents", facts)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, _tag("Error", _tag("Code", code)))

    def _answer(
        self, status: int, body: bytes | str = b"", headers: dict[str, str] | None = None
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response_only(status)
        for header, value in (headers or {}).items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def _headers_of(content: bytes, generation: int) -> dict[str, str]:
    return {
        "ETag": _digest(content),
        "Last-Modified": formatdate(1_767_225_600, usegmt=True),
        "x-goog-generation": str(generation),
    }


def _digest(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _tag(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>"
