"""What the page says of where shards come from: records, order, fingerprint, settings, sources, versions."""

from __future__ import annotations

from collections.abc import Iterator

from imagenet_prep import __version__
from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.manifest import Manifest


def origin(verdict: Verdict, manifest: Manifest | None) -> Iterator[tuple[str, str, bool]]:
    """Name, value, and whether the value is one to compare letter by letter."""
    if verdict.flavour:
        yield "records", verdict.flavour + "".join(f"; {each}" for each in verdict.differences), False
    yield "order", verdict.order, False
    if verdict.fingerprint:
        yield "fingerprint", verdict.fingerprint, True
    if manifest is None:
        yield "made by", "unknown: there is no manifest", False
    else:
        yield "made by", f"imagenet-prep {manifest.version}", False
        for split, source in manifest.sources.items():
            yield from _source(split, source)
        for name, value in manifest.settings.items():
            yield name.replace("_", " "), _plain(value), False
    yield "report by", _versions(), False


def _source(split: str, source: object) -> Iterator[tuple[str, str, bool]]:
    if isinstance(source, dict):
        rest = {**source}
        name, digest = rest.pop("name", ""), rest.pop("names_and_sizes", "")
        yield f"{split} from", f"{name}; {_plain(rest)}", False
        yield f"{split}, names and sizes", str(digest), True


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
    return str(value)
