"""A file server in a process of its own, as fast as sendfile or at a given speed a connection; it
counts its bytes.

python paced_server.py FOLDER [BYTES_A_SECOND]: prints its address; /sent tells how many bytes of
bodies it has sent.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from file_server import FileHandler, FileServer
from syscalls import environment

SLICE = 64 << 10


class PacedServer(FileServer):
    """An open file server; ``speed`` is in bytes a second for each connection,
    0 for as fast as it goes.
    """

    is_open = True

    def __init__(self, folder: Path, speed: float) -> None:
        super().__init__(PacedHandler, folder, "", "")
        self.speed = speed
        self.sent = 0
        self.lock = threading.Lock()


class PacedHandler(FileHandler):
    """Sends slices, each no sooner than its time."""

    server: PacedServer

    def answer(self) -> None:
        """Answer with a file, or with the count."""
        if urlsplit(self.path).path != "/sent":
            super().answer()
            return
        body = str(self.server.sent).encode()
        self.send_head(200, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def send_bytes(self, file: BinaryIO, start: int, stop: int) -> None:
        """Send bytes by the system's sendfile."""
        self.wfile.flush()
        speed, began = self.server.speed, time.monotonic()
        step = min(SLICE, max(1, int(speed / 50))) if speed else 1 << 24
        for offset in range(start, stop, step):
            count = min(step, stop - offset)
            self.connection.sendfile(file, offset, count)
            with self.server.lock:
                self.server.sent += count
            if speed:
                time.sleep(max(0.0, began + (offset + count - start) / speed - time.monotonic()))


@contextmanager
def paced_server(folder: Path, speed: float = 0) -> Iterator[str]:
    """The address of a server that runs as long as the block does."""
    command = [sys.executable, __file__, str(folder), str(speed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def sent_by(url: str) -> int:
    """How many bytes of bodies a server has sent."""
    with urllib.request.urlopen(f"{url}sent") as response:
        return int(response.read())


if __name__ == "__main__":
    server = PacedServer(Path(sys.argv[1]), float(sys.argv[2] if len(sys.argv) > 2 else 0))
    print(server.url, flush=True)  # noqa: T201 -- whoever started it reads that
    server.serve_forever()
