"""Hooks of `make docs`: add the project's pages outside docs/."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "data/README.md": "tables.md",
    "scripts/README.md": "benchmarks.md",
    "README.md": "index.md",
}
"""Pages outside docs/, and their names in the site."""

BOOSTS = {
    "howto/": 8,
    "recipes.": 8,
    "tutorial": 4,
    "changes": 0.2,
    "choices": 0.2,
    "performance": 0.2,
    "benchmarks": 0.2,
    "generated": 0.2,
}
"""The boost of a page in the search, by the start of its name."""

SCRIPT = "site/site.js"


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    from mkdocs.structure.files import File

    for source, name in ELSEWHERE.items():
        if source != "README.md":
            files.append(File.generated(config, name, content=_moved(ROOT / source, name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links out of docs/ to those pages' places in the site,
    and rank the page for the search.
    """
    source = page.file.src_uri
    page.meta["search"] = {
        "boost": next((boost for start, boost in BOOSTS.items() if source.startswith(start)), 1)
    }
    return (
        markdown
        if source in ELSEWHERE.values()
        else _relinked(markdown, ROOT / "docs" / source, source)
    )


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Mend the theme's page: see ``_mended``."""
    return _mended(output, os.path.relpath(SCRIPT, Path(page.file.dest_uri).parent))


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Mend the theme's page for addresses that do not exist."""
    return _mended(output_content, f"/{SCRIPT}") if template_name == "404.html" else output_content


def _mended(page: str, script: str) -> str:
    """Name the search dialog for screen readers; load the script that runs the search on disk
    from the site itself.
    """
    named = page.replace(
        'data-md-component="search" role="dialog"',
        'data-md-component="search" role="dialog" aria-label="Search"',
    )
    return named.replace("https://unpkg.com/iframe-worker/shim", script)


def _moved(path: Path, name: str) -> str:
    return _relinked(path.read_text(), path, name)


def _relinked(text: str, path: Path, name: str) -> str:
    """The text with the links that the page at ``path`` needs as ``name`` in the site."""
    here = Path(name).parent

    def link(match: re.Match[str]) -> str:
        target, mark, fragment = match[1].partition("#")
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        found = Path(os.path.normpath(path.parent / target)).relative_to(ROOT)
        if found.parts[0] == "docs":
            at = str(found.relative_to("docs")) if len(found.parts) > 1 else ""
        else:
            at = ELSEWHERE.get(str(found), "")
        if not at or not Path(at).suffix:
            return (
                "](" + os.path.relpath("index.md", here) + ")"
            )  # a folder, or a file without a page
        return f"]({os.path.relpath(at, here)}{mark}{fragment})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)
