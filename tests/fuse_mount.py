"""A folder seen through FUSE with direct_io, as some network file systems mount theirs: read only.

A process speaks the kernel's protocol (linux/fuse.h, version 7.31) directly; it takes root and
/dev/fuse.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _STATFS, _RELEASE = 1, 2, 3, 14, 15, 17, 18
_FLUSH, _INIT, _OPENDIR, _READDIR, _RELEASEDIR, _BATCH_FORGET = 25, 26, 27, 28, 29, 42
_DIRECT_IO = 1
_HEAD = struct.Struct("<IIQQIIII")


class _Server:
    def __init__(self, descriptor: int, folder: str, reads: int) -> None:
        self._descriptor = descriptor
        self._reads = reads
        self._paths = [folder, folder]  # by number; the root is 1

    def serve(self) -> None:
        """Answer requests until the mount ends."""
        while True:
            try:
                request = os.read(self._descriptor, 1 << 18)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                continue
            _, operation, unique, node, *_ = _HEAD.unpack_from(request)
            if operation in (_FORGET, _BATCH_FORGET):
                continue
            try:
                answer, number = self._answer(operation, node, request[_HEAD.size :]), 0
            except OSError as error:
                answer, number = b"", -(error.errno or errno.EIO)
            os.write(
                self._descriptor, struct.pack("<IiQ", 16 + len(answer), number, unique) + answer
            )

    def _answer(self, operation: int, node: int, data: bytes) -> bytes:
        path = self._paths[min(node, len(self._paths) - 1)]
        if operation == _INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 16, 0, 4, 4, 1 << 16, 1, 16, 0, 0)
        if operation == _LOOKUP:
            return self._entry(f"{path}/{os.fsdecode(data.rstrip(bytes(1)))}")
        if operation == _GETATTR:
            return struct.pack("<QII", 1, 0, 0) + _attributes(node, path)
        if operation in (_OPEN, _OPENDIR):
            return struct.pack("<QII", 0, _DIRECT_IO if operation == _OPEN else 0, 0)
        if operation == _READ:
            if self._reads == 0:
                sys.exit()
            self._reads -= 1
            _, offset, size = struct.unpack_from("<QQI", data)
            with open(path, "rb") as file:
                return os.pread(file.fileno(), size, offset)
        if operation == _READDIR:
            _, offset, size = struct.unpack_from("<QQI", data)
            return _listing(path, offset, size)
        if operation == _STATFS:
            return struct.pack(
                "<QQQQQIIII24x", 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096, 0
            )
        if operation in (_RELEASE, _RELEASEDIR, _FLUSH):
            return b""
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def _entry(self, path: str) -> bytes:
        os.lstat(path)
        if path not in self._paths[1:]:
            self._paths.append(path)
        node = self._paths.index(path, 1)
        return struct.pack("<QQQQII", node, 0, 1, 1, 0, 0) + _attributes(node, path)


def _attributes(node: int, path: str) -> bytes:
    at = os.lstat(path)
    times = [int(time) for time in (at.st_atime, at.st_mtime, at.st_ctime)]
    parts = [time % 10**9 for time in (at.st_atime_ns, at.st_mtime_ns, at.st_ctime_ns)]
    owner = (at.st_mode, at.st_nlink, at.st_uid, at.st_gid, 0, 4096, 0)
    return struct.pack("<QQQQQQIIIIIIIIII", node, at.st_size, at.st_blocks, *times, *parts, *owner)


def _listing(path: str, offset: int, size: int) -> bytes:
    answer = b""
    for number, name in enumerate(sorted(os.listdir(path))[offset:], offset + 1):
        encoded = os.fsencode(name)
        entry = struct.pack("<QQII", 1 << 40, number, len(encoded), 0) + encoded
        entry += bytes(-len(entry) % 8)
        if len(answer) + len(entry) > size:
            break
        answer += entry
    return answer


@contextmanager
def fuse_mount(folder: Path, place: Path, reads: int = -1) -> Iterator[subprocess.Popen[bytes]]:
    """``folder`` mounted at ``place`` as long as the block runs, by a process that ends after some
    reads, if not -1.

    Once it has ended, the mount is one that went away.
    """
    place.mkdir()
    if not os.access("/dev/fuse", os.W_OK) or os.geteuid() != 0:
        pytest.skip("a mount takes root and /dev/fuse")
    descriptor = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={descriptor},rootmode=40755,user_id=0,group_id=0,allow_other".encode()
    system = ctypes.CDLL(None, use_errno=True)
    if system.mount(b"fuse", os.fsencode(place), b"fuse.test", 1, options) != 0:  # 1: read only
        os.close(descriptor)
        pytest.skip(f"no mount here: {os.strerror(ctypes.get_errno())}")
    call = [sys.executable, __file__, str(descriptor), str(folder), str(reads)]
    with subprocess.Popen(call, pass_fds=[descriptor]) as server:
        os.close(descriptor)
        try:
            yield server
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)
            server.kill()


if __name__ == "__main__":
    _Server(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])).serve()
