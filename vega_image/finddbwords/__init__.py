"""The words under `vega-image finddb`: click declarations, in modules by subject.

A module lists its commands in WORDS; to add words, add a module and its line below.
"""

from __future__ import annotations

import click

from vega_image.finddbwords import auditing, comparing, proving, reading


@click.group()
def finddb() -> None:
    """Read, check and compare MIOpen's find-db; what is in it, and what MIOpen makes of it."""


for _words in (
    reading.WORDS,
    auditing.WORDS,
    comparing.WORDS,
    proving.WORDS,
):
    for _word in _words:
        finddb.add_command(_word)
