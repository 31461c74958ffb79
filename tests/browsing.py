"""Pages in Debian's chromium: opened at a width, light or dark,
and what they say on the console.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

REQUIRED = os.environ.get("IMAGENET_PREP_BROWSER") == "required"
"""Set where a missing browser must not go unnoticed: in CI."""

VIEWS = [(1280, "light"), (390, "dark")]


def missing(what: str) -> None:
    """Skip these tests, or fail where a browser is required."""
    if REQUIRED:
        pytest.fail(f"{what}, and IMAGENET_PREP_BROWSER says that it is required")
    pytest.skip(f"{what}: apt-get install chromium, pip install playwright")


@dataclass
class Shown:
    """A page in the browser, what it said on the console, and what it asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def show(browser: Any, page_path: Path, width: int, scheme: str, **how: Any) -> Shown:
    """Open a page at a width in CSS pixels, light or dark, and wait until it has settled."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, **how
    )
    shown = Shown(context.new_page())
    shown.page.on("console", lambda message: shown.said.append(f"{message.type}: {message.text}"))
    shown.page.on("pageerror", lambda error: shown.said.append(f"error: {error}"))
    shown.page.on(
        "dialog", lambda dialog: (shown.said.append(f"dialog: {dialog.message}"), dialog.dismiss())
    )
    shown.page.on("request", lambda request: shown.requests.append(request.url))
    shown.page.goto(page_path.resolve().as_uri(), wait_until="load")
    return shown


def serious_findings(page: Any) -> list[str]:
    """What axe finds on a page that keeps people out:
    rule and place, those of a serious or critical impact.
    """
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['target']}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]
