"""Processes in which the system refuses locks or memory maps of files below a folder,
as some mounts do.
"""

from __future__ import annotations

import atexit
import errno
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refused(const char *what, int descriptor) {
    const char *number = getenv(what), *folder = getenv("REFUSED_BELOW");
    char link[64], path[4096];
    if (!number || !*number || descriptor < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) ? 0 : atoi(number);
}

int flock(int descriptor, int operation) {
    int number = refused("REFUSED_LOCK", descriptor);
    if (number) { errno = number; return -1; }
    return syscall(SYS_flock, descriptor, operation);
}

void *mmap(void *at, size_t length, int protection, int flags, int descriptor, off_t offset) {
    int number = refused(flags & MAP_SHARED ? "REFUSED_SHARED" : "REFUSED_PRIVATE", descriptor);
    if (number) { errno = number; return MAP_FAILED; }
    return (void *) syscall(SYS_mmap, at, length, protection, flags, descriptor, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int descriptor, off_t offset) {
    return mmap(at, length, protection, flags, descriptor, offset);
}
"""


def refusing(folder: Path, **refused: str) -> dict[str, str]:
    """The environment of a process that gets these errors for files below ``folder``.

    ``lock``, ``shared`` and ``private`` are names of errors: of flock, and of shared and private
    maps.
    """
    numbers = {
        f"REFUSED_{what.upper()}": str(getattr(errno, name)) for what, name in refused.items()
    }
    return {"LD_PRELOAD": _compile(), "REFUSED_BELOW": os.path.realpath(folder), **numbers}


@functools.cache
def _compile() -> str:
    """The path of the library: one for all tests, so that commands with it start alike."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    folder = tempfile.mkdtemp(prefix="refusing-")
    atexit.register(shutil.rmtree, folder)
    library = f"{folder}/refusing.so"
    options = ["-shared", "-fPIC", "-x", "c", "-", "-o", library]
    subprocess.run([compiler, *options], input=_SOURCE, text=True, check=True)
    return library
