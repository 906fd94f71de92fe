"""The command line: words in, one exit code out. The only place that ends the program."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

from vega_image import __version__
from vega_image.cliwords import register
from vega_image.errors import InterruptedRunError, UsageError, VegaError

if TYPE_CHECKING:
    from vega_image.console import Console

STDOUT, STDERR = 1, 2
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
    epilog="Exit codes, words and files: docs/architecture.md.",
)
@click.version_option(__version__, prog_name="vega-image")
@click.option("-C", "--directory", "folder", metavar="DIR", help="Factory folder.")
@click.pass_context
def cli(context: click.Context, folder: str | None) -> None:
    """Build AI images for the AMD Radeon VII (gfx906) that prove themselves on the card.

    TARGET is a file of images/; REF is TARGET, name:tag, name@sha256:... or oci:DIR.
    """
    if folder is not None:
        context.default_map = _everywhere(cli, {"directory": folder})


def _everywhere(group: click.Group, defaults: dict[str, object]) -> dict[str, object]:
    """Give every word of a group these defaults, and every word of a group in it."""
    return {
        name: _everywhere(word, defaults) if isinstance(word, click.Group) else defaults
        for name, word in group.commands.items()
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run one word and exit; every VegaError becomes its exit code here and nowhere else."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    for number in ENDINGS:
        # Ignored from the start: nohup, or a shell's background job.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    code = _run(words)
    # The interpreter puts the default handlers back before it is quite gone.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    sys.exit(code)


def _open_closed_streams() -> None:
    """Give `>&-` a sink: else the next file opened would be standard output."""
    handle = os.open(os.devnull, os.O_RDWR)
    while handle <= STDERR:
        handle = os.open(os.devnull, os.O_RDWR)
    os.close(handle)
    sys.stdout = sys.stdout or os.fdopen(STDOUT, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(STDERR, "w", closefd=False)


def _run(words: list[str]) -> int:
    try:
        result = cli.main(args=words, prog_name="vega-image", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _report(InterruptedRunError("INTERRUPTED", _interrupted(words)), words)
    except click.ClickException as error:
        return _report(_usage(error, words), words)
    except VegaError as error:
        return _report(error, words)
    except Exception as error:  # noqa: BLE001 - the last line of defence: no bare traceback
        return _report(_bug(error), words)
    return result if isinstance(result, int) else 0


def _interrupted(words: list[str]) -> str:
    """Say what is left of the word that was interrupted."""
    if "run" in words:
        return "stopped; nothing keeps running"
    if next((word for word in words if word in cli.commands), "") == "finddb":
        return "interrupted; the next run begins anew"
    return "interrupted; the next run goes on from here"


def _report(error: VegaError, words: list[str]) -> int:
    if "--debug" in words:
        import traceback

        traceback.print_exception(error.__cause__ or error)
    heard = error.code != "OUTPUT_FAILED"
    try:
        _console(as_json="--json" in words and heard).error(error)
    except VegaError as deaf:
        error = deaf
        with suppress(VegaError):
            _console(as_json=False).error(error)
    return error.exit_code


def _console(*, as_json: bool) -> Console:
    from vega_image.console import Console, Level

    return Console.choose(
        progress="plain", as_json=as_json, environ=os.environ, level=Level.NORMAL
    )


def _usage(error: click.ClickException, words: list[str]) -> VegaError:
    context = error.ctx if isinstance(error, click.UsageError) else None
    known = next((item for item in words if item in cli.commands), None)
    path = f"vega-image {known}" if known else "vega-image"
    word = context.command_path if context else path
    return UsageError("USAGE", error.format_message(), hint=f"{word} --help")


def _bug(error: Exception) -> VegaError:
    import traceback

    handle, path = tempfile.mkstemp(prefix="vega-image-", suffix=".log", text=True)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    message = f"this is a bug in vega-image ({type(error).__name__}); details: {path}"
    wrapped = VegaError("BUG", message, hint="send that file; --debug shows it here")
    wrapped.__cause__ = error
    return wrapped


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Begin to clean up; a second Ctrl-C must not cut that short (kill -9 always can)."""
    for number in ENDINGS:
        signal.signal(number, _go_on)
    raise KeyboardInterrupt


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN: children would inherit that, and be deaf too."""


register(cli)
