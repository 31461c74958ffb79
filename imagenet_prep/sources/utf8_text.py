"""decode_text: the bytes of a text file -> its text; the error names the first byte that is not
UTF-8.
"""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.storage.location import AnyPath


def decode_text(path: AnyPath, content: bytes) -> str:
    """The text of a file, without a byte order mark; raises InputError if it is not UTF-8."""
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        problem = f"{path} is not UTF-8, at byte {error.start:,}"
        raise InputError(problem, "expected a text in UTF-8", "save it as UTF-8") from error
