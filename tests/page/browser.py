"""Pages of made-up rows, opened from disk in a headless Chromium, if there is one.

python -m tests.page.browser page.html picture.png 1280 dark figure=memory
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bench.analysis.contents import Contents
from bench.analysis.frame import from_rows
from bench.page import vega
from bench.page.document import render
from bench.results.columns import Row

QUIETLY = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


script = cache(vega.script)  # making it takes a second or more


def html(rows: Iterable[Row], baseline: str = "sdpa", title: str = "A title") -> str:
    """The page of these rows."""
    return render(Contents(from_rows(rows), baseline), title, script())


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, for playwright's synchronous interface. Skips the test where it or playwright is missing."""
    try:
        api = import_module("playwright.sync_api")
    except ImportError:
        _without("playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        _without(f"no browser: none of {', '.join(names)} is installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIETLY))
        yield browser
        browser.close()


def _without(reason: str) -> NoReturn:
    """Skips, or fails where a browser has to be there, as in CI."""
    if os.environ.get("BENCH_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def shoot(page: Path, picture: Path, width: int = 1280, theme: str = "light", choice: str = "") -> Path:
    """A picture of the whole page in a window of this width, in pixels, with this choice in its address."""
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        tab.goto(f"{page.resolve().as_uri()}#{choice}")
        tab.wait_for_selector("#panels[data-drawn]")
        tab.screenshot(path=picture, full_page="case=" not in choice)
    return picture


if __name__ == "__main__":
    page, picture, width, theme, *choice = sys.argv[1:]
    print(shoot(Path(page), Path(picture), int(width), theme, *choice))
