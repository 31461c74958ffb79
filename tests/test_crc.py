"""CRC32C: the extension module that is loaded by hand is the package's own."""

from __future__ import annotations

import importlib.machinery
import subprocess
import sys

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep import tfrecord as crc


@given(st.binary(max_size=300), st.integers(0, 0xFFFFFFFF))
def test_it_is_the_function_of_the_package(data: bytes, start: int) -> None:
    """Same values from any start, over any buffer."""
    assert crc.crc32c(data, start) == package.crc32c(data, start)
    assert crc.crc32c(memoryview(data)) == crc.crc32c(bytearray(data)) == package.crc32c(data)


def test_golden_value() -> None:
    """RFC 3720, B.4: 32 bytes of zeros."""
    assert crc.crc32c(bytes(32)) == 0x8A9136AA


def test_a_build_of_another_shape_is_imported_the_public_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the extension module is not found, the package is imported."""
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", lambda *_: None)
    assert crc._load() is package.crc32c


def test_the_package_around_it_is_not_loaded() -> None:
    """Neither the package nor what it imports for its own sake is loaded."""
    code = (
        "import sys; import imagenet_prep.tfrecord.framing; print({'crc32c', "
        "'importlib.metadata'} & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
