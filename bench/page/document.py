"""The page: its text, its style and its script in one file that opens from disk and asks the network for nothing.

The figures are Vega-Lite's (https://vega.github.io/vega-lite/), drawn by Vega's interpreter, which needs no eval.
Beside Plotly 7.1 its script is 0.9 MB, not 4.8; a page of 2,500 cases loads in 2.2 s, not 4.9; and a variant that is
called <b>x</b> is shown as typed, where Plotly draws a bold x. The price: making the script takes two to three seconds.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from bench.analysis.answer import Paragraph
from bench.analysis.tables import Table
from bench.errors import UserError
from bench.page.content import content

if TYPE_CHECKING:
    import pandas as pd

# Read one after another, as one script.
SCRIPTS = ("values.js", "looks.js", "state.js", "scales.js", "figures.js", "table.js", "detail.js", "page.js")


def render(
    visits: pd.DataFrame,
    cases: pd.DataFrame,
    answer: Sequence[Paragraph],
    tables: Sequence[Table],
    baseline: str,
    title: str,
) -> str:
    """The page of these visits (`bench.analysis.frame.read`) and their cases (`bench.analysis.cases.cases`), as HTML.

    The paragraphs of the answer come first, the tables last. Up to 1,000 visits bring their samples, more their
    medians. UserError where the package that carries Vega is not installed.
    """
    scripts = (vega(), "".join(map(_file, SCRIPTS)))
    return Template(_file("page.html")).substitute(
        title=html.escape(title),
        policy=_policy(scripts),
        style=_file("page.css"),
        data=as_json(content(visits, cases, answer, tables, baseline)),
        vega=scripts[0],
        script=scripts[1],
    )


def as_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # in ASCII, so U+2028 and U+2029 are escaped
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


@cache
def vega() -> str:
    """The script that defines vegaEmbed. UserError where the package that carries it is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise UserError("--html: the package vl-convert-python is not installed; pip install -e '.[html]'") from None
    return _inline(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _inline(script: str) -> str:
    """A script as it can stand in a page: a browser reads every line end as \\n, and would end it at </script."""
    return script.replace("\r\n", "\n").replace("\r", "\n").replace("</script", r"<\/script")


def _policy(scripts: Sequence[str]) -> str:
    """What a browser is to refuse: every request, and every script but these (https://www.w3.org/TR/CSP3/).

    Styles may stand inline, for Vega sets some on what it draws.
    """
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _file(name: str) -> str:
    return files("bench.page").joinpath(name).read_text(encoding="utf-8")
