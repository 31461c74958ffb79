"""compression_of, refuse_compressed: the first bytes of a file -> how it is compressed, and the
commands that make it a plain tar.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine, Shell, command_line, quoted
from imagenet_prep.hints import Hint
from imagenet_prep.storage.durable import unused_path

_COMPRESSED = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9][1\x17]": "bzip2",
    rb"\xfd7zXZ": "xz",
    rb"\x28\xb5/\xfd": "Zstandard",
}
"""Compressions by the first bytes, at most 5, as a pattern; a name in a tar may start with BZh."""
_DECOMPRESSORS = {"gzip": "gzip", "bzip2": "bzip2", "xz": "xz", "Zstandard": "zstd"}
_SUFFIXES = {"gzip": "gz", "bzip2": "bz2", "xz": "xz", "Zstandard": "zst"}

LONGEST_MAGIC = 5
"""The number of bytes that tell a compression."""


def refuse_compressed(archive: object, start: bytes, inside: str = "") -> None:
    """Raise InputError with the command that helps if a tar, by its first bytes, is compressed.

    ``inside`` is its name if it is a member of ``archive``.
    """
    compression = compression_of(start)
    if not compression:
        return
    name = f"{archive} ({inside})" if inside else archive
    raise InputError(
        f"{name} is compressed with {compression}",
        "expected a plain tar, whose files are read in place",
        _how_to_decompress(archive, compression, inside),
    )


def _how_to_decompress(archive: object, compression: str, inside: str) -> str:
    """The commands that decompress a tar, or the one ``inside`` an archive."""
    if not isinstance(archive, Path):
        if inside:
            return f"unpack {archive} on a local disk, decompress the tars in it, and use those"
        return "copy it to a local disk, decompress it there, and put the plain tar in its place"
    path = str(archive)
    if inside:
        return _unpack_and_decompress(path, compression, inside)
    target = path
    for suffix in (".gz", ".bz2", ".xz", ".zst"):
        target = target.removesuffix(suffix)
    if target.endswith(".tgz"):
        target = f"{target.removesuffix('.tgz')}.tar"
    if target == path:
        next_step = "then run the same command again"
    else:
        target = unused_path(target.removesuffix(".tar"), ".tar")
        next_step = f"then use {target} in its place"
    return Hint(decompress_command(path, target, compression), f"    ({next_step})")


def _unpack_and_decompress(path: str, compression: str, inside: str) -> Hint:
    """The commands that unpack an archive into a folder, and decompress the tars in the folder of
    the one ``inside`` it; plain tars stay as they are.
    """
    folder = path.removesuffix(".tar")
    if folder == path:
        folder = f"{path}-unpacked"
    unpack = command_line(["mkdir", "-p", "--", folder])
    unpack = unpack.then(command_line(["tar", "-xf", path, "-C", folder]))
    folder_of_tars = posixpath.dirname(f"{folder}/{inside}")
    commands = unpack.then(_decompress_all(folder_of_tars, compression))
    return Hint(commands, f"    (then move {path} away, and use the tars in {folder} in its place)")


def _decompress_all(folder: str, compression: str) -> CommandLine:
    """The loop that decompresses the tars in a folder."""
    program = _DECOMPRESSORS[compression]
    tars = Shell(f"{quoted(folder)}/*.tar")
    plain, packed = Shell('"$tar"'), Shell(f'"$tar.{_SUFFIXES[compression]}"')
    test = command_line([program, "-tq", Shell("<"), plain])
    rename = command_line(["mv", "--", plain, packed])
    decompress = command_line([program, "-d", "--", packed])
    body = test.then(rename).then(decompress)
    loop = (Shell("for tar in"), tars, Shell("; do"), *body.words, Shell("; done"))
    return command_line(loop)


def compression_of(start: bytes) -> str:
    """The name of the compression of a file with these first bytes;
    "" if it has none that is known.
    """
    return next((name for magic, name in _COMPRESSED.items() if re.match(magic, start)), "")


def decompress_command(
    source: str, target: str, compression: str, *, keeps: bool = True
) -> CommandLine:
    """The command that writes ``target``, a plain tar or another file;
    ``keeps`` the compressed file, perhaps under another name.
    """
    packed = source
    if source == target:
        packed = unused_path(source, f".{_SUFFIXES[compression]}")
    decompress = command_line([_DECOMPRESSORS[compression], "-dc", "--", packed])
    unpack = decompress.into(target)
    if not keeps:
        unpack = unpack.then(command_line(["rm", "--", packed]))
    if packed == source:
        return unpack
    return command_line(["mv", "--", source, packed]).then(unpack)
