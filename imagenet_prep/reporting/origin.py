"""What the page says of where shards come from: records, order, fingerprint, settings, sources, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from imagenet_prep import __version__
from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.state.manifest import Manifest

_CONTENTS = {"image": "image files", "pixels": "images, as numbers", "array": "arrays"}
_FIRST = ("content", "record", "array", "rescale", "reencode", "order", "first_label", "compression")


def origin(verdict: Verdict, manifest: Manifest | None, *, is_own: bool) -> Iterator[tuple[str, str, bool]]:
    """Name, value, and whether the value is one to compare letter by letter; ``is_own`` is that of Subject."""
    if verdict.flavour and not is_own:
        yield "records", verdict.flavour + "".join(f"; {each}" for each in verdict.differences), False
    if not is_own:
        yield "order", verdict.order, False
    if verdict.fingerprint:
        yield "fingerprint", verdict.fingerprint, True
    if manifest is None:
        yield "made by", "unknown: there is no manifest", False
    else:
        yield "made by", f"imagenet-prep {manifest.version}" + (" and a recipe" if is_own else ""), False
        for split, source in manifest.sources.items():
            yield from _source(split, source, is_own=is_own)
        usual = ((name.replace("_", " "), _plain(value)) for name, value in manifest.settings.items())
        for name, text in _recipe_settings(manifest.settings) if is_own else usual:
            yield name, text, False
    yield "report by", _versions(), False


def _source(split: str, source: object, *, is_own: bool) -> Iterator[tuple[str, str, bool]]:
    if isinstance(source, dict):
        rest = {**source}
        name, digest = rest.pop("name", ""), rest.pop("names_and_sizes", "")
        number = rest.get("images")
        is_count = is_own and isinstance(number, int)
        count = f"{number:,} {'file' if number == 1 else 'files'}" if is_count else _plain(rest)
        yield f"{split} from", f"{name}; {count}", False
        yield f"{split}, names and sizes", str(digest), True


# a recipe's ----------------------------------------------------------------------------------------------------


def _recipe_settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a recipe decides, in the words of one; what is of another form is said as it stands."""
    for name in (*(each for each in _FIRST if each in settings), *sorted(settings.keys() - set(_FIRST))):
        value = settings[name]
        match name, value:
            case "recipe", _:
                yield "version of recipes", _plain(value)
            case "content", str():
                yield name, _CONTENTS.get(value, value)
            case "record", "inception":
                yield name, "the fifteen features of the Inception layout"
            case "record", dict():
                yield name, "; ".join(_mapped(feature, mapped) for feature, mapped in value.items())
            case "rescale", [low, high]:
                yield name, f"values from {_plain(low)} to {_plain(high)} become 0 to 1; what lies beyond is clipped"
            case "order", dict():
                yield name, _order(value)
            case "array", _:
                yield "array of each .npz", _plain(value)
            case _:
                yield name.replace("_", " "), _plain(value)


def _mapped(feature: str, mapped: object) -> str:
    """One feature, and which column it holds."""
    if not isinstance(mapped, dict):
        return f"{feature}: {_plain(mapped)}"
    words = [str(mapped.get("type")), "optional" if mapped.get("optional") else ""]
    return f"{feature} from {mapped.get('from')} ({', '.join(filter(None, words))})"


def _order(splits: Mapping[str, object]) -> str:
    """How the records of each split are ordered; of all of them at once, if that is the same."""
    words = {split: _shuffle(value) for split, value in splits.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{split}: {text}" for split, text in words.items())


def _shuffle(value: object) -> str:
    if not isinstance(value, dict) or "shuffle" not in value:
        return _plain(value)
    return f"shuffled with seed {_plain(value.get('seed'))}" if value["shuffle"] else "as listed, not shuffled"


# -----------------------------------------------------------------------------------------------------------------


def _versions() -> str:
    import jinja2
    import matplotlib as mpl
    import PIL

    libraries = f"matplotlib {mpl.__version__}, Jinja2 {jinja2.__version__}, Pillow {PIL.__version__}"
    return f"imagenet-prep {__version__}, {libraries}"


def _plain(value: object) -> str:
    """A value of a JSON file in words."""
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_plain(each)}" for name, each in value.items() if each is not None)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
