"""The registry: one decorator, under which a function's signature says what it can do.

    @variant("sliding_window")
    def sliding_window(q, k, v, *, window, causal=False):
        ...            # q (batch, heads, n_q, head_dim), k and v (batch, kv_heads, n_kv, head_dim) -> like q

Keyword-only names are mask features (fields of `Mask`). One that is not named is never passed and never
ignored: the variant refuses masks that have it. One without a default is required. Two names are reserved:
`mask` is the whole `Mask` (naming it means: takes every mask), and `plan` is what the variant's
`plan(problem)` returned, made before the clock starts.
"""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import variants
from variants.machine import Machine
from variants.masks import NOUNS, Mask
from variants.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor

    Attention = Callable[[Tensor, Tensor, Tensor], Tensor]

Limits = Callable[[Problem, Machine], str | None]

ENTRY_POINTS = "attention_bench.variants"
_FEATURES = tuple(f.name for f in fields(Mask))


class ImportFailed(Exception):
    """A module that was to register variants could not be imported; the text names it and says why."""


class Unsupported(Exception):
    """Raised by a variant's plan or call for what only its library knows it cannot do; the text is the reason."""


@dataclass(frozen=True)
class Variant:
    """How attention is computed: a function under a name, with what it takes and what limits it.

    function         (q, k, v, *, features...) -> like q
    exact            False for what approximates softmax attention
    exponent         power of the length that time and memory are promised to grow as, under every mask that it takes
    requires         packages that it imports
    plan             problem -> whatever the function wants as `plan`
    tunable          further arguments of `plan` -> the values that `bench.tune` tries
    limits           (problem, machine) -> why it cannot run, or None
    backward_limits  the same for problems that need gradients
    compiled         it goes through torch.compile
    kernel           the fused kernel that it forces ("math" for none); running another one is wrong
    """

    name: str
    function: Callable[..., Tensor]
    exact: bool = True
    exponent: float | None = None
    requires: tuple[str, ...] = ()
    plan: Callable[..., Any] | None = None
    tunable: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    limits: Limits | None = None
    backward_limits: Limits | None = None
    compiled: bool = False
    kernel: str | None = None

    @property
    def parameters(self) -> dict[str, bool]:
        """Keyword-only name -> whether it is required."""
        parameters = list(inspect.signature(self.function).parameters.values())[3:]
        return {p.name: p.default is p.empty for p in parameters}

    @property
    def summary(self) -> str:
        """What its file says first: what it is, and when it pays."""
        return self._documentation.split("\n\n")[0].replace("\n", " ")

    @property
    def sources(self) -> list[str]:
        """The papers and pages that its file names."""
        return [url.rstrip(".,") for url in re.findall(r"https?://[^\s);]+", self._documentation)]

    @property
    def _documentation(self) -> str:
        return inspect.getdoc(inspect.getmodule(self.function)) or ""

    def refusal(self, problem: Problem, machine: Machine, direction: str = "fwd") -> str | None:
        """Why this problem cannot be run here, or None. Touches no device and imports nothing."""
        return (
            self.refuses(problem.mask)
            or self._missing(machine)
            or (self.limits(problem, machine) if self.limits else None)
            or (self.backward_limits(problem, machine) if self.backward_limits and direction != "fwd" else None)
        )

    def refuses(self, mask: Mask) -> str | None:
        """Why this mask is not for this variant, or None."""
        if "mask" in self.parameters:
            return None
        given = mask.features()
        for name in _FEATURES:
            if self.parameters.get(name) and name not in given:
                return f"needs {NOUNS[name]}"
        for name in given:
            if name not in self.parameters:
                return f"takes no {NOUNS[name].removeprefix('a ')}"
        return None

    def some_mask(self) -> Mask:
        """The plainest mask that this variant takes."""
        needed: dict[str, Any] = {
            name: name == "causal" or 16 for name, required in self.parameters.items() if required and name in _FEATURES
        }
        return Mask(**needed)

    def prepare(self, problem: Problem, **choice: int) -> Any:
        """What `plan` returns for this problem, and for these of its `tunable` arguments; None where it has no plan."""
        return self.plan(problem, **choice) if self.plan else None

    def bind(self, problem: Problem, plan: Any) -> Attention:
        """The attention function of this problem: (q, k, v) -> like q."""
        offered = {**problem.mask.features(), "mask": problem.mask, "plan": plan}
        arguments = {name: offered[name] for name in self.parameters if name in offered}
        return lambda q, k, v: self.function(q, k, v, **arguments)

    def _missing(self, machine: Machine) -> str | None:
        absent = [name for name in self.requires if name not in machine.packages]
        return f"needs the package {', '.join(absent)}" if absent else None


REGISTRY: dict[str, Variant] = {}


def variant(name: str, **facts: Any) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Registers a function as a variant; `facts` are fields of `Variant`. The function comes back unchanged."""

    def register(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        new = Variant(name, function, **facts)
        _check_signature(new)
        if name in REGISTRY and _home(REGISTRY[name].function) != _home(function):
            raise ValueError(f"variant {name!r} is already registered by {_home(REGISTRY[name].function)}")
        REGISTRY[name] = new
        return function

    return register


def load(imports: Iterable[str] = ()) -> dict[str, Variant]:
    """All variants: this package's own, those of installed packages' entry points, and those of `imports`.

    `imports` are module names or paths of .py files. ImportFailed where one of them cannot be imported.
    """
    load_own()
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        _import(entry.value, entry.load)
    for name in imports:
        _import(name, partial(_import_file, Path(name)) if name.endswith(".py") else partial(import_module, name))
    return REGISTRY


def load_own() -> None:
    """Registers the variants of this package."""
    for module in pkgutil.iter_modules(variants.__path__):
        import_module(f"variants.{module.name}")


def find(name: str, imports: Iterable[str] = ()) -> Variant:
    """The variant of that name; what others registered is loaded only where it is wanted. KeyError, ImportFailed."""
    return REGISTRY[name] if name in REGISTRY else load(imports)[name]


def _import(name: str, load_it: Callable[[], object]) -> None:
    try:
        load_it()
    except (Exception, SystemExit) as error:
        raise ImportFailed(f"{name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> None:
    """Imports a .py file from wherever it is, once, under its stem."""
    name = path.stem
    loaded = sys.modules.get(name)
    if loaded is not None and Path(getattr(loaded, "__file__", None) or "").resolve() == path.resolve():
        return
    if loaded is not None or not path.exists():
        raise ImportError("there is no such file" if loaded is None else f"a module named {name!r} is loaded already")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _home(function: Callable[..., Tensor]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _check_signature(new: Variant) -> None:
    accepted = (*_FEATURES, "mask", "plan")
    parameters = list(inspect.signature(new.function).parameters.values())
    for i, p in enumerate(parameters):
        positional = i < 3 and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        if not positional and (p.kind is not p.KEYWORD_ONLY or p.name not in accepted):
            raise TypeError(
                f"variant {new.name!r}: parameter {p.name!r} is not understood; "
                f"a variant takes (q, k, v, *, ...) with keyword-only names among {', '.join(accepted)}"
            )
    if len(parameters) < 3:
        raise TypeError(f"variant {new.name!r} takes (q, k, v, *, ...), not ({', '.join(p.name for p in parameters)})")
    if "plan" in new.parameters and new.plan is None:
        raise TypeError(f"variant {new.name!r} takes a plan, but was registered without plan=")
