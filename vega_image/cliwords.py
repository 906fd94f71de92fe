"""The words of images: click declarations only; each body hands plain values to commands/."""

from __future__ import annotations

from pathlib import Path

import click

from vega_image.clioptions import (
    FILE,
    FOLDER,
    Call,
    Machine,
    engine,
    fetching,
    machine,
    platform,
    quiet_call,
    ref_argument,
    target_argument,
    word,
)
from vega_image.finddbwords import finddb


@click.command()
@click.option(
    "--schema",
    is_flag=False,
    flag_value="spec",
    metavar="[WORD]",
    help="Print the JSON Schema of a spec, or of what WORD prints under --json.",
)
@click.option("--markdown", is_flag=True, help="Print docs/targets.md from the records.")
@word
def targets(call: Call, *, schema: str | None, markdown: bool) -> int:
    """List the images this factory can make."""
    from vega_image.commands.targets import list_targets, print_schema

    return print_schema(call, schema) if schema else list_targets(call, markdown=markdown)


@click.command()
@target_argument
@click.option("--payload", type=FOLDER, help="kind windows: the files that the office brings.")
@fetching
@word
def lock(call: Call, *, target: str, payload: Path | None) -> int:
    """Resolve what TARGET names and write images/TARGET.lock.json."""
    from vega_image.commands.lock import lock as run

    return run(call, target, payload=payload)


@click.command()
@target_argument
@platform
@word
def plan(call: Call, *, target: str, platform: str | None) -> int:
    """Show the steps of TARGET: built or not, why, sizes and time."""
    from vega_image.commands.plan import show_plan

    return show_plan(call, target, platform=platform)


@click.command()
@target_argument
@click.option("-o", "--output", type=FOLDER, required=True, help="Folder to write.")
@click.option("--context", is_flag=True, help="Also place locked files and the layers.")
@platform
@fetching
@engine
@word
def render(
    call: Call, *, target: str, output: Path, context: bool, platform: str | None
) -> int:
    """Write the Dockerfile, units and scripts of TARGET, or the tree of a Windows target."""
    from vega_image.commands.render import render as run

    return run(call, target, output=output, context=context, platform=platform)


@click.command()
@target_argument
@click.option("--until", metavar="STEP", help="Stop after this step (`render`: before any).")
@click.option("-o", "--output", type=FOLDER, help="Also write what was built here.")
@click.option(
    "--relock",
    type=click.Choice(["never", "if-gone"]),
    default="never",
    help="Make a new lock when locked files left the mirror.",
)
@click.option("--codec", type=click.Choice(["zstd", "gzip"]), help="Override the spec's codec.")
@click.option("--level", type=click.IntRange(1, 22), help="Override the spec's level.")
@click.option("--dry-run", is_flag=True, help="Walk the whole line, make nothing.")
@click.option("--accept-unproven", is_flag=True, help="Run recipes never executed before.")
@click.option("--url-base", metavar="URL", help="kind wsl: where the office serves -o's files.")
@machine
@fetching
@engine
@word
def build(  # noqa: PLR0913 - one parameter per option
    call: Call,
    *,
    target: str,
    until: str | None,
    output: Path | None,
    relock: str,
    codec: str | None,
    level: int | None,
    dry_run: bool,
    accept_unproven: bool,
    url_base: str | None,
    machine: Machine,
) -> int:
    """Build TARGET: an OCI image (VERSION-candidate), a .wsl archive, a Windows VM image."""
    from vega_image.commands.build import BuildRequest
    from vega_image.commands.build import build as run

    request = BuildRequest(
        target=target,
        until=until,
        output=output,
        relock_if_gone=relock == "if-gone",
        codec=codec,
        level=level,
        dry_run=dry_run,
        accept_unproven=accept_unproven,
        url_base=url_base,
        machine=machine,
    )
    return run(call, request)


@click.command()
@ref_argument
@click.option("--device-code", is_flag=True, help="List GPU code: file, architecture, bytes.")
@word
def inspect(call: Call, *, ref: str, device_code: bool) -> int:
    """Show digest, layers, labels and device code of an image."""
    from vega_image.commands.inspect import inspect as run

    return run(call, ref, device_code=device_code)


@click.command()
@ref_argument
@fetching
@engine
@word
def reproduce(call: Call, *, ref: str) -> int:
    """Rebuild REF from the lock inside it, from an empty store, and compare."""
    from vega_image.commands.reproduce import reproduce as run

    return run(call, ref)


@click.command()
@target_argument
@platform
@word
def check(call: Call, *, target: str, platform: str | None) -> int:
    """Run all static checks of the rendered TARGET; no device, no engine."""
    from vega_image.commands.check import check as run

    return run(call, target, platform=platform)


@click.command()
@target_argument
@click.option("--downloads", is_flag=True, help="Also remove its locked files.")
@click.option("--yes", is_flag=True, help="Really remove.")
@word
def clean(call: Call, *, target: str, downloads: bool, yes: bool) -> int:
    """Remove what was built for TARGET from the store."""
    from vega_image.commands.clean import clean as run

    return run(call, target, downloads=downloads, yes=yes)


@click.command()
@click.option("--sysroot", type=FOLDER, help="Read this folder instead of the machine.")
@click.option("--build-host-only", is_flag=True, help="Leave out the GPU.")
@word
def doctor(call: Call, *, sysroot: Path | None, build_host_only: bool) -> int:
    """Say whether this host can build and run images, and what to do if not."""
    from vega_image.commands.doctor import checkup

    return checkup(call, sysroot=sysroot, build_host_only=build_host_only)


@click.command()
@ref_argument
@click.option("--model", type=FILE, required=True, help="GGUF file of the model.")
@click.option("--model-sha256", metavar="HEX", help="Refuse any other model.")
@click.option("--cpu", is_flag=True, help="Accept running without the GPU (slow).")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port on 127.0.0.1; 0 picks a free one.",
)
@click.option("--ask", metavar="PROMPT", help="Complete PROMPT, print the answer, stop.")
@click.option("--memory", type=int, metavar="BYTES", help="Limit of the container.")
@click.option("--wait", type=float, default=900.0, show_default=True, help="Seconds to load.")
@click.option("--sysroot", type=FOLDER, hidden=True)
@engine
@word
def run(  # noqa: PLR0913 - one parameter per option
    call: Call,
    *,
    ref: str,
    model: Path,
    model_sha256: str | None,
    cpu: bool,
    port: int,
    ask: str | None,
    memory: int | None,
    wait: float,
    sysroot: Path | None,
) -> int:
    """Serve a model from an image in the sandbox, on 127.0.0.1 with a key."""
    from vega_image.commands.run import RunRequest
    from vega_image.commands.run import run as start

    request = RunRequest(
        ref=ref,
        model=model,
        model_sha256=model_sha256,
        cpu=cpu,
        port=port,
        ask=ask,
        sysroot=sysroot,
        memory=memory,
        wait=wait,
    )
    return start(call, request)


@click.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "help_option_names": [],
    }
)
@click.option("--store", type=FOLDER, envvar="VEGA_IMAGE_STORE", help="Store folder.")
@engine
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def selftest(words: tuple[str, ...], store: Path | None, engine: str | None) -> int:
    """Compare what a device computes with references (its own options: selftest --help)."""
    from vega_image.commands.selftest import selftest as start

    return start(quiet_call(store=store, engine=engine), words)


@click.group()
def pool() -> None:
    """Carry the locked files of a target in one folder."""


@pool.command("export")
@target_argument
@click.option("-o", "--output", type=FOLDER, required=True, help="Folder to write.")
@fetching
@word
def pool_export(call: Call, *, target: str, output: Path) -> int:
    """Write all locked files of TARGET into one folder."""
    from vega_image.commands.pool import carry_out

    return carry_out(call, target, output)


@pool.command("import")
@click.argument("folder", type=FOLDER)
@word
def pool_import(call: Call, *, folder: Path) -> int:
    """Take the files of such a folder into the store."""
    from vega_image.commands.pool import carry_in

    return carry_in(call, folder)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell: eval "$(vega-image completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    group = click.get_current_context().find_root().command
    click.echo(kind(group, {}, "vega-image", "_VEGA_IMAGE_COMPLETE").source())
    return 0


@click.command()
@word
def version(call: Call) -> int:
    """Show versions of vega-image and of what decides bytes."""
    from vega_image.commands.version import show_version

    return show_version(call)


def register(group: click.Group) -> None:
    """Hang all words on the command line."""
    words: list[click.Command] = [
        targets, lock, plan, render, build, inspect, reproduce, check, clean, doctor, run, pool,
        selftest, finddb, completion, version,
    ]  # fmt: skip
    for item in words:
        group.add_command(item)
