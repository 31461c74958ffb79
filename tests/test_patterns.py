"""Patterns of file names: what shells mean by each sign, and no pattern that takes for ever."""

from __future__ import annotations

import warnings

import pytest
from bounded import processor_time
from hypothesis import example, given, settings
from hypothesis import strategies as st

from imagenet_prep.sources.patterns import MAX_LENGTH, compile_pattern

SEGMENT = st.lists(
    st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]"]), min_size=1, max_size=4
)
PATTERNS = st.lists(st.just("**") | SEGMENT.map("".join), min_size=1, max_size=4).map("/".join)
NAMES = st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)


def matches_plainly(pattern: list[str], name: list[str]) -> bool:
    """What a pattern means, by its parts and those of a name, in the slowest and plainest way."""
    if not pattern:
        return not name
    if pattern[0] == "**":
        seen = next((i for i, part in enumerate(name) if part.startswith(".")), len(name))
        if not pattern[1:]:
            return seen == len(name) > 0
        return any(matches_plainly(pattern[1:], name[skipped:]) for skipped in range(seen + 1))
    if not name or (name[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    return signs_match(pattern[0], name[0]) and matches_plainly(pattern[1:], name[1:])


def signs_match(pattern: str, name: str) -> bool:
    """The same within one part."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return signs_match(pattern[1:], name) or bool(name and signs_match(pattern, name[1:]))
    if not name:
        return False
    for sign, meant in (
        ("?", name[0]),
        ("[ab]", "ab"),
        ("[!a]", name[0] if name[0] != "a" else ""),
    ):
        if pattern.startswith(sign):
            return name[0] in meant and signs_match(pattern[len(sign) :], name[1:])
    return pattern[0] == name[0] and signs_match(pattern[1:], name[1:])


@settings(deadline=None, max_examples=500)
@example("*a*ab", "aab")  # a star that takes the most leaves nothing for the next one
@given(PATTERNS, NAMES)
def test_a_pattern_matches_what_it_means(pattern: str, name: str) -> None:
    """The expression of a pattern finds the same names as a search through all ways to read it."""
    if any("**" in part and part != "**" for part in pattern.split("/")):
        with pytest.raises(ValueError, match="nothing else between"):
            compile_pattern(pattern)
        return
    found = compile_pattern(pattern).fullmatch(name) is not None
    assert found == matches_plainly(pattern.split("/"), name.split("/"))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 40 + "b", "a" * 250),
        ("*" + "?*" * 100 + "b", "a" * 250),
        ("*[ab]" * 60 + "c", "ab" * 120),
        ("**/" * 30 + "b", "a/" * 60 + "a"),
        ("**/a/" * 30 + "b", "a/" * 60 + "a"),
        ("**/*a*a*a*/" * 20 + "b", ("a" * 60 + "/") * 40 + "a"),
        ("/".join(["*a" * 20] * 15) + "b", "/".join(["a" * 200] * 15)),
        ("**/" * 30 + "**", "a/" * 60 + ".a"),
        ("*" + "/*" * 2000, "a/" * 2000 + "/"),
    ],
)
def test_no_pattern_takes_for_ever(pattern: str, name: str) -> None:
    """Many * and ** are done with in a fraction of a second,
    where trying all ways would take years.
    """
    with processor_time():
        assert compile_pattern(pattern).fullmatch(name) is None


def test_a_match_of_many_stars_is_found() -> None:
    """What such patterns do match, they find."""
    with processor_time():
        assert compile_pattern("**/" * 30 + "*a" * 40 + "*b").fullmatch("x/" * 60 + "a" * 200 + "b")


def test_a_pattern_is_no_longer_than_a_path() -> None:
    """The longest path of the system is the longest pattern;
    compiling that one takes less than a second.
    """
    with processor_time():
        assert compile_pattern("*a" * (MAX_LENGTH // 2)).fullmatch("a" * 250) is None
    with pytest.raises(ValueError, match="4,097 characters: expected at most 4,096"):
        compile_pattern("a" * (MAX_LENGTH + 1))


@pytest.mark.parametrize(
    "pattern", ["[[]", "[[a]", "[a&&b]", "[a||b]", "[a~~b]", "[+--]", "[--a]", "[a-]", "[^]]"]
)
def test_brackets_hold_nothing_special(pattern: str) -> None:
    """No sequence within brackets means more than its characters and ranges,
    nor is any warned of.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accept = compile_pattern(pattern)
    if pattern == "[a&&b]":
        assert [sign for sign in "ab&|" if accept.fullmatch(sign)] == ["a", "b", "&"]
    if pattern == "[+--]":
        assert [sign for sign in "*+,-." if accept.fullmatch(sign)] == ["+", ",", "-"]
    if pattern == "[--a]":
        assert [sign for sign in ",-0Aab" if accept.fullmatch(sign)] == ["-", "0", "A", "a"]


def test_a_range_that_runs_backwards_is_refused() -> None:
    """[z-a] is not a pattern, and is said so."""
    for pattern in ("[z-a]", "[a--]", "[!b-a]"):
        with pytest.raises(ValueError, match="reversed range"):
            compile_pattern(pattern)


def test_a_bracket_that_is_not_closed_is_refused_with_the_pattern_of_the_sign() -> None:
    """A ] right after the [ is one of its characters; [[] matches the sign, as the error says."""
    for pattern in ("a[b.png", "[]", "[!]"):
        with pytest.raises(ValueError, match=r"unclosed \[.*\[\[\] stands for the sign \["):
            compile_pattern(pattern)
    assert compile_pattern("a[[]b.png").fullmatch("a[b.png")
