"""The page: its text, its style and its script in one file that opens from disk and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

from bench.analysis.contents import Contents
from bench.page.content import content

# Read one after another, as one script.
SCRIPTS = (
    "values.js",
    "looks.js",
    "state.js",
    "scales.js",
    "growth.js",
    "figures.js",
    "table.js",
    "detail.js",
    "page.js",
)


def render(contents: Contents, title: str, script: str) -> str:
    """The page, as HTML: the answer first, the tables last, and no table of measured cases, for the page makes its own.

    Up to 1,000 visits bring their samples, more their medians. `script` is `bench.page.vega.script`'s.
    """
    scripts = (script, "".join(map(_file, SCRIPTS)))
    return Template(_file("page.html")).substitute(
        title=html.escape(title),
        policy=_policy(scripts),
        style=_file("page.css"),
        data=as_json(content(contents)),
        vega=scripts[0],
        script=scripts[1],
    )


def as_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # in ASCII, so U+2028 and U+2029 are escaped
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _policy(scripts: Sequence[str]) -> str:
    """What a browser is to refuse: every request, and every script but these (https://www.w3.org/TR/CSP3/).

    Styles may stand inline, for Vega sets some on what it draws.
    """
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _file(name: str) -> str:
    return files("bench.page").joinpath(name).read_text(encoding="utf-8")
