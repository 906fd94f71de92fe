"""The word that asks a library about a find-db."""

from __future__ import annotations

from pathlib import Path

import click

from vega_image.clioptions import FILE, FOLDER, Call, word


@click.command()
@click.argument("ref", required=False)
@click.option("--root", type=FOLDER, help="A root file system in place of an image.")
@click.option("--db", type=FILE, envvar="VEGA_IMAGE_FINDDB", help="Not its own find-db.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Ask about N records.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.95,
    show_default=True,
    help="Exit 9 when the usable share is under it.",
)
@click.option("--arch", metavar="ARCH", help="Chip (gfx906:sramecc+:xnack-).")
@click.option("--cu", type=click.IntRange(1, 1024), help="Compute units (60).")
@click.option("--env", multiple=True, metavar="MIOPEN_X=Y", help="Set this for the library.")
@word
def audit(  # noqa: PLR0913 - one parameter per option
    call: Call,
    *,
    ref: str | None,
    root: Path | None,
    db: Path | None,
    sample: int | None,
    threshold: float,
    arch: str | None,
    cu: int | None,
    env: tuple[str, ...],
) -> int:
    """Ask the libMIOpen of REF (or of a root) which records of the find-db it can use.

    The library runs jailed, without GPU or network; C compiler needed. Exit 9: under the
    threshold.
    """
    from vega_image.commands.finddb.audit import AuditRequest
    from vega_image.commands.finddb.audit import audit as run

    request = AuditRequest(
        ref=ref,
        root=root,
        db=db,
        sample=sample,
        threshold=threshold,
        arch=arch,
        cu=cu,
        env=env,
    )
    return run(call, request)


WORDS = (audit,)
