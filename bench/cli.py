"""What the commands share: argument parsing that answers in one line, `@file`, and exit statuses.

Imports nothing heavy: `--help` must answer before torch could even be loaded.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from bench.errors import UserError

USER_ERROR, INTERRUPTED = 2, 130


class Parser(argparse.ArgumentParser):
    """An argument parser whose refusals are one line, and which takes arguments from a file named as @file."""

    def __init__(self, command: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"python -m bench.{command}",
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            fromfile_prefix_chars="@",
            allow_abbrev=False,
        )

    def convert_arg_line_to_args(self, arg_line: str) -> list[str]:
        """A line of an @file: arguments as in a shell, with # comments."""
        return shlex.split(arg_line, comments=True)

    def error(self, message: str) -> NoReturn:
        """One line on stderr, exit status 2."""
        raise UserError(message.removeprefix("argument "))


def comma_separated(one: Callable[[str], object]) -> Callable[[str], object]:
    """An argparse type: a comma-separated list of `one`, each value once; ValueErrors keep their text."""

    def parse(text: str) -> tuple[object, ...]:
        return tuple(dict.fromkeys(one(part.strip()) for part in text.split(",")))

    return explained(parse)


def explained(parse: Callable[[str], object]) -> Callable[[str], object]:
    """An argparse type whose ValueErrors reach the user with their own text."""

    def parsed(text: str) -> object:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def one_of(*accepted: str) -> Callable[[str], str]:
    """An argparse type: one of the words accepted."""

    def parse(text: str) -> str:
        if text not in accepted:
            raise ValueError(f"{text!r} is not understood; accepted: {', '.join(accepted)}")
        return text

    return parse


def write(option: str, path: Path, text: str) -> Path:
    """Writes what an option asked for, and returns where; UserError where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{option}: {path} cannot be written: {error.strerror}") from None
    return path


def check_readable(path: Path) -> None:
    """UserError where results are to be read from what cannot be opened: it is better known before the work."""
    try:
        if not path.is_fifo():  # which can be read once only
            path.open("rb").close()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; a results CSV, as bench.run writes it, is expected") from None


def check_folder(option: str, folder: Path) -> None:
    """Makes the folder for an option's files, if there is none; UserError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{option}: {folder} is no folder to write to: {error.strerror}") from None


def check_output(option: str, path: str | Path | None, others: Iterable[str | Path | None]) -> None:
    """UserError, before any work, where an option's file is one of others, that are read or written as well, or is
    results, or cannot be written; - and None pass."""
    if path not in (None, "-"):
        _check_apart(option, Path(path), [Path(other) for other in others if other not in (None, "-")])
        _check_writable(option, Path(path))


def _check_apart(option: str, path: Path, others: Iterable[Path]) -> None:
    if any(_same(path, other) for other in others):
        raise UserError(f"{option}: {path} is read, or written by another option; name another file")
    if path.suffix.lower() == ".csv" and path.exists():
        raise UserError(f"{option}: {path} is there already, and a CSV may hold results; name another file")


def _check_writable(option: str, path: Path) -> None:
    new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UserError(f"{option}: {path} cannot be written: {error.strerror}") from None
    if new:
        path.resolve().unlink()  # not a link to it


def _same(path: Path, other: Path) -> bool:
    """Whether these are one file, by whatever names."""
    return path.resolve() == other.resolve() or (path.exists() and other.exists() and path.samefile(other))


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Runs a command and exits with its status; what the user can put right is one line and status 2.

    What an output's encoding lacks is printed as a ?, instead of raising.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()  # what cannot be printed is known by now
        sys.exit(status)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
        _drop_output()
        sys.exit(0)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop_output()
        print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(USER_ERROR)


def _drop_output() -> None:
    """What is still to be printed goes nowhere: Python would try again at its end, and complain."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
