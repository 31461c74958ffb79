"""The site that make docs makes: every page, every public name,
no link that leads nowhere, nothing from elsewhere.
"""

from __future__ import annotations

import functools
import html
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browsing import VIEWS, serious_findings
from docstrings import first_paragraph
from existing import existing

import imagenet_prep

pytestmark = pytest.mark.project

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as make docs makes them; a warning is a failure."""
    folder = tmp_path_factory.mktemp("site")
    call = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    return folder


def test_every_page_is_there_and_links_lead_somewhere(site: Path) -> None:
    """Each page of docs/ is made, and every local link and picture of every page is to a file,
    and to a place in it.
    """
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).with_suffix(".html") for path in existing(docs, "**/*.md")}
    texts = {
        path: path.read_text() for path in existing(site, "**/*.html") if path.name != "404.html"
    }
    assert pages <= {path.relative_to(site) for path in texts}
    places = {path: {"", *re.findall(r'\bid="([^"]+)"', text)} for path, text in texts.items()}
    wrong = []
    for path, text in texts.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            name, _, place = html.unescape(link).partition("#")
            target = Path(os.path.normpath(path.parent / name)) if name else path
            if not re.match(r"[a-z]+:|//", link) and not (
                target.exists() and place in places.get(target, {place})
            ):
                wrong.append((path.name, link))
    assert not wrong


def test_every_public_name_has_its_place(site: Path) -> None:
    """The page of the API has each name with its docstring's first paragraph."""
    text = re.sub(r"<[^>]+>", "", (site / "generated" / "api.html").read_text())
    words = " ".join(html.unescape(text).split())
    for name in imagenet_prep.__all__:
        if name != "records":
            first = first_paragraph(getattr(imagenet_prep, name)).replace("``", "")
            assert name in words
            assert first in words, name


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    """No page loads a script, a font, a style or a picture from another place:
    it can be read without a network.
    """
    for path in existing(site, "**/*.html"):
        loading = r'<(?:script|img|iframe)\b[^>]*\bsrc="(?:https?:)?//|<link\b[^>]*rel="(?:stylesheet|preconnect)"[^>]*//'
        assert not re.search(loading, path.read_text()), path.name


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site as a web server has it."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["index", "cli"])
def test_no_page_keeps_anybody_out(address: str, browser: Any, name: str) -> None:
    """axe finds nothing serious, on a wide screen in light colours and on a phone in dark ones."""
    for width, scheme in VIEWS:
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.goto(f"{address}/{name}.html")
        assert serious_findings(page) == []
        page.close()


def test_no_page_is_wider_than_a_phone(address: str, browser: Any) -> None:
    """At 390 pixels text wraps; only code and tables scroll within themselves."""
    page = browser.new_page(viewport={"width": 390, "height": 800})
    for name in ("index", "tutorial", "howto/subset", "cli"):
        page.goto(f"{address}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    page.close()
