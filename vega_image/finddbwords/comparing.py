"""Words that hold find-dbs beside each other."""

from __future__ import annotations

from pathlib import Path

import click

from vega_image.clioptions import FILE, Call, word


@click.command()
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True,
              help="Show so many keys; 0: all.")  # fmt: skip
@word
def diff(call: Call, *, a: Path, b: Path, limit: int) -> int:
    """Say which records and solvers B has lost, gained or changed against A."""
    from vega_image.commands.finddb.diff import show_diff

    return show_diff(call, a, b, limit=limit)


@click.command()
@click.argument("dbs", type=FILE, nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, required=True, help="File to write.")
@click.option(
    "--stricter-wins",
    is_flag=True,
    help="Where they differ, keep only solvers that every one names; of journals, both lines.",
)
@word
def merge(call: Call, *, dbs: tuple[Path, ...], output: Path, stricter_wins: bool) -> int:
    """Make one of several machines' find-dbs or journals; where they differ is an error."""
    from vega_image.commands.finddb.merge import merge as run

    return run(call, dbs, output=output, stricter_wins=stricter_wins)


WORDS = (diff, merge)
