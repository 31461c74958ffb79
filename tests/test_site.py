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


SEARCHES = {
    "labels start at 1": ("recipes", "recipes/class-folders", "howto/own-splits", "train/pytorch"),
    "corrupt image": ("troubleshooting", "train/pytorch", "verify"),
    "proxy": ("cli",),
    "upgrade": ("install",),
    "uninstall": ("install",),
    "docker": ("install",),
    "colab": ("install", "tutorial"),
    "cite": ("index", "cite"),
    "resume after kill": ("howto/resume",),
    "slurm": ("howto/slurm", "cluster"),
    "s3 bucket": ("howto/s3", "object-stores"),
    "disk space": ("howto/time-and-space",),
    "resize": ("howto/resize",),
    "kaggle": ("getting-imagenet",),
    "webdataset": ("export",),
    "bounding boxes": ("howto/coco-voc", "record-format", "getting-imagenet"),
    "lightning": ("train/frameworks",),
    "class folders": ("recipes/class-folders",),
    "parquet": ("recipes", "export", "getting-imagenet"),
    "checksum": ("verify", "record-format", "files"),
}
"""What people type, and the pages that answer: one is among the first three."""


META = "document.querySelector('.md-search-result__meta').innerText"
"""What the site says above the results of a search."""


def test_searches_find_their_page(address: str, browser: Any) -> None:
    """The site's own search has a right page among the first three."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{address}/index.html")
    page.keyboard.press("f")
    missed = {}
    for words, expected in SEARCHES.items():
        page.fill(".md-search__input", "")
        page.keyboard.press("Backspace")
        page.wait_for_function(f"{META}.includes('Type')")
        page.keyboard.type(words)
        page.wait_for_function(f"{META}.match(/match|No /)")
        page.wait_for_timeout(300)  # it searches while one types
        links = page.eval_on_selector_all(
            ".md-search-result__item > .md-search-result__link", "links => links.map(a => a.href)"
        )
        names = [link.removeprefix(f"{address}/").partition(".html")[0] for link in links]
        if not set(expected) & set(names[:3]):
            missed[words] = names[:3]
    page.close()
    assert missed == {}


WIDEST = """body => {
    document.body.innerHTML = body;
    return Math.max(0, ...[...document.querySelectorAll("pre > code")].map(
        code => code.scrollWidth - code.clientWidth));
}"""
"""Shows the text of another page, and says how much wider its widest code is than its box."""


def test_code_does_not_scroll(site: Path, address: str, browser: Any) -> None:
    """On a screen of 1280 pixels, no block of code of a page of ours is wider than its box.

    All pages have one style: it is loaded once, without the scripts, which would begin a search.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 800}, java_script_enabled=False)
    page.goto(f"{address}/index.html")
    style = re.compile(r"<body\b[^>]*>|<style>|\b(?:assets/stylesheets|site)/[\w.-]*css\b")
    first = style.findall((site / "index.html").read_text())
    assert len(first) == 4
    wide = []
    for path in existing(ROOT / "docs", "**/*.md"):
        name = path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        text = (site / name).read_text()
        assert style.findall(text) == first, name
        _, _, body = text.partition("<body ")
        widest = page.evaluate(WIDEST, body.partition(">")[2])
        if widest > 0:
            wide.append((name, widest))
    page.close()
    assert wide == []
