"""The format of an image file by its first bytes, and the ending of its name."""

from __future__ import annotations

ENDINGS = {
    "JPEG": (".jpg", ".jpeg"),
    "PNG": (".png",),
    "GIF": (".gif",),
    "WEBP": (".webp",),
    "BMP": (".bmp",),
    "TIFF": (".tif", ".tiff"),
    "AVIF": (".avif",),
}
"""The formats that are read, by the names that Pillow has for them, with their endings."""

LOST = ("16 bits", "palette", "alpha", "other frames")
"""The names of everything that an image can have and its 8-bit JPEG can't."""

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
_BRANDS = {b"avif": "AVIF", b"avis": "AVIF", b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIF"}
"""The formats in ISO's container, by the brand of the file."""


def format_of(head: bytes | memoryview) -> str:
    """The format of an image by its first 16 bytes or more: one of ``ENDINGS``, "HEIC" or "HEIF";
    "" for another file.
    """
    if bytes(head[:3]) == b"\xff\xd8\xff":  # nearly always
        return "JPEG"
    head = bytes(head[:16])
    if head[:4] == b"RIFF":
        return "WEBP" if head[8:12] == b"WEBP" else ""
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "")
    names = (name for magic, name in _MAGIC.items() if head.startswith(magic))
    name = next(names, "")
    return "" if name == "BMP" and head[6:10] != bytes(4) else name


def ending_of(head: bytes | memoryview) -> str:
    """The ending of the name of an image with these first bytes; "" if it can't be read."""
    return ENDINGS.get(format_of(head), ("",))[0]


def first_bytes(data: bytes | memoryview) -> str:
    """The first bytes of a file for messages: as numbers, and as text if they are one."""
    head = bytes(data[:4])
    if not head:
        return "none"
    text = head.decode("ascii", "replace")
    numbers = head.hex(" ")
    return f"{numbers} ({text})" if text.isprintable() and text.isascii() else numbers


def is_npy(data: bytes | memoryview) -> bool:
    """Whether the bytes start as an .npy does."""
    return data[:1] == b"\x93" and bytes(data[:6]) == b"\x93NUMPY"
