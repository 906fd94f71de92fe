"""Words that make of evidence what an image carries, and look at what it came to."""

from __future__ import annotations

from pathlib import Path

import click

from vega_image.clioptions import FILE, FOLDER, Call, target_argument, word

THIS_CARD = 60


@click.command()
@click.argument("db", type=FILE)
@click.argument("more", metavar="[JOURNAL]...", type=FILE, nargs=-1)
@click.option("--evidence", "journals", type=FILE, multiple=True, metavar="JOURNAL",
              help="A journal of a solver sweep; several: repeat it, or name them after DB.")  # fmt: skip  # noqa: E501
@click.option("-o", "--output", type=FOLDER, help="Folder to write: db, manifest, evidence.")
@click.option("--profile", type=click.Choice(["safe", "strict"]), default="safe",
              show_default=True, help="safe: the fallback where nothing is proven; strict: none.")  # fmt: skip  # noqa: E501
@click.option("--library", metavar="FILE|DIGEST",
              help="The libMIOpen the evidence must be of; default: the journals' only one.")  # fmt: skip  # noqa: E501
@click.option("--perf-config", default="default", show_default=True,
              help="The perf-config the evidence must be of.")  # fmt: skip
@click.option("--cu", type=click.IntRange(1, 64), default=THIS_CARD, show_default=True,
              help="Compute units of the card: names the db, and what counts.")  # fmt: skip
@click.option("--test-evidence", is_flag=True, help="Count recordings too; for tests only.")
@click.option("--rules", type=FOLDER, help="Folder of deny rules beside the shipped ones.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True,
              help="Spell out so many changes.")  # fmt: skip
@word
def curate(  # noqa: PLR0913 - one parameter per option
    call: Call,
    *,
    db: Path,
    more: tuple[Path, ...],
    journals: tuple[Path, ...],
    output: Path | None,
    profile: str,
    library: str | None,
    perf_config: str,
    cu: int,
    test_evidence: bool,
    rules: Path | None,
    limit: int,
) -> int:
    """Make of DB and evidence a find-db that serves only what is proven, or the fallback."""
    from vega_image.commands.finddb.curate import CurateRequest, run_curate

    request = CurateRequest(
        db=db,
        journals=(*journals, *more),
        output=output,
        profile=profile,
        library=library,
        perf_config=perf_config,
        cu=cu,
        test_evidence=test_evidence,
        rules=rules,
        limit=limit,
    )
    return run_curate(call, request)


@click.command()
@target_argument
@click.option("--from", "curated", type=FOLDER, help="Folder that curate wrote.")
@click.option("--library", metavar="FILE|DIGEST",
              help="The image's libMIOpen; evidence of another one is refused.")  # fmt: skip
@word
def bake(call: Call, *, target: str, curated: Path | None, library: str | None) -> int:
    """Put a curated find-db, with its manifest, into what TARGET is built from."""
    from vega_image.commands.finddb.bake import BakeRequest, run_bake

    return run_bake(call, BakeRequest(target=target, curated=curated, library=library))


@click.command()
@click.argument("ref", required=False)
@click.option("--root", type=FOLDER, help="A root file system; / is this host.")
@click.option("--environ", type=FILE, metavar="FILE",
              help="The environment of a process there: lines NAME=VALUE, or /proc/PID/environ.")  # fmt: skip  # noqa: E501
@click.option("--env", "assignments", multiple=True, metavar="NAME=VALUE",
              help="A variable as a container is started with it; repeatable.")  # fmt: skip
@word
def effective(
    call: Call,
    *,
    ref: str | None,
    root: Path | None,
    environ: Path | None,
    assignments: tuple[str, ...],
) -> int:
    """Show what MIOpen sees in REF or under --root; exit 9 if the profile is defeated."""
    from vega_image.commands.finddb.effective import (
        EffectiveRequest,
        run_effective,
    )

    request = EffectiveRequest(ref=ref, root=root, environ=environ, assignments=assignments)
    return run_effective(call, request)


WORDS = (curate, bake, effective)
