"""The script that draws the page's figures: Vega-Lite (https://vega.github.io/vega-lite/), from vl-convert-python.

They are drawn by Vega's interpreter, which needs no eval. Beside Plotly 7.1 the script is 0.9 MB, not 4.8; a page of
2,500 cases loads in 2.2 s, not 4.9; and a variant that is called <b>x</b> is shown as typed, where Plotly draws a bold
x. The price: making the script takes one to three seconds, in which Python does nothing else.
"""

from __future__ import annotations

from importlib.util import find_spec

from bench.errors import UserError


def check() -> None:
    """UserError where the package that carries Vega is not installed."""
    if not find_spec("vl_convert"):
        raise UserError("--html: the package vl-convert-python is not installed; pip install -e '.[html]'")


def script() -> str:
    """What defines vegaEmbed. UserError where the package cannot be loaded."""
    try:
        import vl_convert
    except ImportError as error:
        raise UserError(f"--html: vl-convert-python cannot be loaded: {error}") from None
    return inline(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def inline(text: str) -> str:
    """A script as it can stand in a page: a browser reads every line end as \\n, and would end it at </script."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("</script", r"<\/script")
