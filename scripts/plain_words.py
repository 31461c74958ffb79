"""Finds phrases that a reader must decode, in pages, strings, docstrings and comments;
`make lint` runs it.
"""

from __future__ import annotations

import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

PLAIN = {
    r"go(es|ing|ne)? on (with|from)|went on with": "resume, continue",
    r"pass(es|ed|ing)? (it |them )?over": "skip",
    r"but for|all but": "except",
    r"beside|besides": "next to, with, compared with",
    r"held against|holds? .{0,40} against": "compare with",
    r"anew|aright|midway|whatever became": "again, correct, halfway",
    r"dear|dearer": "expensive",
    r"as of now|as yet|by all signs": "so far",
    r"there (is|are) not": "does not exist",
    r"is (told|said)|are (told|said)|be told|be said": "reports that",
    r"takes? for|taken for|took for": "treats as",
    r"needs? not be|need be": "does not have to be",
    r"else (it|they|that|the|those|with|an|a|by|is|are)\b": "otherwise",
    r"in words": "with an explanation",
    r"of (ours|theirs) (own)?": "our, their",
    r"whoever|whosoever": "any program, anyone who",
    r"has come|have come|came to its|come to its": "has reached, is finished",
    (
        r"an image it takes|a (shard|image|second|record|class|line|task|worker) (it "
        r")?(takes|costs)"
    ): "per image takes",
    r"begun|begins?|began": "start",
    r"lies|lie|lay|lain": "is, are",
    r"thus|hence|thereof|therein|whence|wherein": "so",
}
"""A phrase, as a pattern, and its replacement."""

HEADLESS = re.compile(
    r"(?:^|(?<=[.!?:] )|(?<=\n))(Of|What|Those|Who|That of|Such|The same,|Where it) (?!.*\?)\S+ \S+"
)
"""A sentence that opens without its subject; questions may."""


def findings(text: str) -> Iterator[str]:
    """The faults of a text, each with its replacement."""
    for pattern, plain in PLAIN.items():
        for match in re.finditer(rf"\b(?:{pattern})\b", text, re.I):
            yield f"{match[0]!r}: write {plain}"
    for match in HEADLESS.finditer(text):
        yield f"{match[0]!r}: name the subject first"


def pages() -> Iterator[tuple[str, int, str]]:
    """Every paragraph of the documents, without code: file, line, text."""
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]:
        is_code = False
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            is_code ^= line.startswith("```")
            if not is_code:
                yield str(path.relative_to(ROOT)), number, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)


def code() -> Iterator[tuple[str, int, str]]:
    """Every string of words and every comment of the package."""
    kinds = {
        tokenize.STRING,
        tokenize.COMMENT,
        getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING),
    }
    for path in ROOT.glob("imagenet_prep/**/*.py"):
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in kinds and " " in token.string:
                    text = re.sub(r"``[^`]*``|\{[^}]*\}", "", token.string)
                    yield str(path.relative_to(ROOT)), token.start[0], text.strip("#frb\"' ")


def main() -> int:
    """Print every finding; returns 1 if there is one."""
    found = [
        f"{path}:{line}: {each}"
        for path, line, text in (*pages(), *code())
        for each in findings(text)
    ]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
