"""Words that read one find-db."""

from __future__ import annotations

from pathlib import Path

import click

from vega_image.clioptions import FILE, Call, word

db_argument = click.argument("db", type=FILE)
db_option = click.option(
    "--db", type=FILE, envvar="VEGA_IMAGE_FINDDB", help="The find-db; or name it first."
)


@click.command()
@db_argument
@word
def stats(call: Call, *, db: Path) -> int:
    """Count what DB holds: directions, data types, C=3, winners, records nothing can serve."""
    from vega_image.commands.finddb.stats import show_stats

    return show_stats(call, db)


@click.command()
@click.argument("what", nargs=-1)
@db_option
@click.option("--first-layer-rgb", is_flag=True, help="Only convolutions of 3-channel input.")
@click.option("--direction", type=click.Choice(["F", "B", "W"]), help="Only this direction.")
@click.option("--dtype", metavar="TYPE", help="Only this data type, as FP32.")
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True,
              help="At most so many records; 0: all.")  # fmt: skip
@word
def query(  # noqa: PLR0913 - one parameter per option
    call: Call,
    *,
    what: tuple[str, ...],
    db: Path | None,
    first_layer_rgb: bool,
    direction: str | None,
    dtype: str | None,
    limit: int,
) -> int:
    """Show records: WHAT is a network (resnet50), a key, or a shape.

    A shape is any of CxHxW, NxCxHxW and n=, c=, h=, w=, k=, filter=, stride=, pad=,
    dilation=, groups= (as in: 3x224x224 k=64 filter=7x7 stride=2).
    """
    from vega_image.commands.finddb.query import QueryRequest
    from vega_image.commands.finddb.query import query as run

    request = QueryRequest(
        words=what,
        db=db,
        first_layer_rgb=first_layer_rgb,
        direction=direction,
        dtype=dtype.upper() if dtype else None,
        limit=limit,
    )
    return run(call, request)


@click.command()
@click.argument("key", nargs=-1)
@db_option
@click.option("--user-db", type=FILE, help="A user's db over DB (~/.config/miopen/...).")
@word
def explain(call: Call, *, key: tuple[str, ...], db: Path | None, user_db: Path | None) -> int:
    """Say what MIOpen does with the problem KEY in each find mode, and why."""
    from vega_image.commands.finddb.explain import explain as run

    return run(call, key, db=db, user_db=user_db)


@click.command()
@db_argument
@click.option("--system-db", type=FILE, help="DB is a user's db; this one lies under it.")
@click.option("--sizes", is_flag=True, help="Also compute every output's size (seconds).")
@click.option("--limit", type=click.IntRange(0), metavar="N",
              help="Show N findings of a code (20, under --json 1000); 0: all. Counts are complete.")  # fmt: skip  # noqa: E501
@word
def lint(
    call: Call, *, db: Path, system_db: Path | None, sizes: bool, limit: int | None
) -> int:
    """Find what is wrong in DB and what MIOpen makes of it; exit 2 on errors."""
    from vega_image.commands.finddb.lint import show_lint

    return show_lint(call, db, system_db=system_db, sizes=sizes, limit=limit)


@click.command()
@db_argument
@click.option("--budget", metavar="TIME", help="Stop where this is spent: 90s, 30m, 8h.")
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True,
              help="Show so many trials; 0: all.")  # fmt: skip
@click.option("-o", "--output", type=FILE, help="Write every planned trial here (JSON lines).")
@word
def plan(call: Call, *, db: Path, budget: str | None, limit: int, output: Path | None) -> int:
    """Order what has to be proven on a card: C=3 weight gradients, networks, then by cost."""
    from vega_image.commands.finddb.plan import show_plan

    return show_plan(call, db, budget=budget, limit=limit, output=output)


@click.command()
@db_argument
@word
def perfdb(call: Call, *, db: Path) -> int:
    """Count what a perf-db holds (text or SQLite); exit 2 where a line is none."""
    from vega_image.commands.finddb.perfdb import show_perfdb

    return show_perfdb(call, db)


WORDS = (stats, query, explain, lint, plan, perfdb)
