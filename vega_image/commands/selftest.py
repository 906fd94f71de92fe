"""vega-image selftest: the closed world's words, plus images as what is judged."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from vega_image.clioptions import Call
from vega_image.commands.run import loaded
from vega_image.engines.choose import Host, opened
from vega_image.engines.container import GIB, ContainerHost, ContainerSpec, Mount, Tmpfs
from vega_image.engines.program import run_program
from vega_image.images import built_image, layout_of
from vega_image.oci.layout import read_layout
from vega_image.selftest.external.ggml.installation import Installation
from vega_image.selftest.external.ggml.place import Place, Wanted, device_name, folder_place
from vega_image.selftest.external.ggml.program import find_program
from vega_image.selftest.external.protocol import Command, Ended
from vega_image.selftest.facts import read_facts
from vega_image.selftest.main import main
from vega_image.serving.gpu import choose_gpu
from vega_image.serving.sandbox import KFD, SCRATCH, account_for

PROGRAM = "/vega-ggml"
LABEL_VALUE = "selftest"
MEMORY = 16 * GIB


@dataclass(frozen=True, slots=True)
class Nodes:
    """Device files a container gets, and the numeric groups that own them."""

    devices: tuple[Path, ...] = ()
    groups: tuple[int, ...] = ()


def selftest(call: Call, words: Sequence[str]) -> int:
    """Do what selftest's own words say; `--target` may also be an image."""
    return main(words, open_place=partial(open_place, call))


@contextmanager
def open_place(call: Call, wanted: Wanted) -> Iterator[Place]:
    """Open a root folder, or an image in an engine.

    What has a slash is a folder, and so is a folder that no image here is named after. Raises
    VegaError: no such image (2), no engine (5), no card (7).
    """
    if _is_folder(call, wanted.target):
        with folder_place(wanted) as place:
            yield place
        return
    call.factory.refuse_windows(wanted.target)
    layout = read_layout(layout_of(call.store, wanted.target))
    host = Host(environ=call.settings.environ, store=call.store.root)
    nodes = nodes_for(wanted.device)
    with (
        TemporaryDirectory(prefix="vega-ggml-") as folder,
        opened(call.settings.engine, host) as engine,
    ):
        # Never the program in the image: what is judged does not bring its own judge.
        program = find_program(Path(folder), Path(folder))
        image = loaded(call, engine, layout)
        # An engine shows one card only, which is then the first.
        device = device_name(wanted.device.partition(":")[0])
        inside = Installation(Path("/"), device, silence=wanted.silence, inside=True)
        yield Place(
            name=f"{wanted.target} ({layout.digest})",
            installation=inside,
            program=Path(PROGRAM),
            run=_runner(engine, image, nodes, program),
            digests={"image": layout.digest},
        )


def _is_folder(call: Call, target: str) -> bool:
    if not target or target.startswith(("/", "./", "../")):
        return True
    if target.startswith("oci:") or ":" in target or "@" in target:
        return False
    return Path(target).is_dir() and built_image(call.store, target) is None


def nodes_for(device: str) -> Nodes:
    """Choose the device files of --device; raises HostError (7) as choose_gpu does."""
    word, _, number = device.partition(":")
    if word == "cpu":
        return Nodes()
    if word == "vulkan":
        found = sorted(Path("/dev/dri").glob("renderD*"))
        chosen = found[int(number) : int(number) + 1] if number else found
        groups = {path.stat().st_gid for path in chosen} - {0}
        return Nodes(tuple(chosen), tuple(sorted(groups)))
    gids = {*os.getgroups(), os.getegid()}
    facts = read_facts(Path("/"), os.environ, uid=os.geteuid(), gids=gids)
    index = int(number or "0")
    slot = facts.cards[index].pci_slot if index < len(facts.cards) else None
    gpu = choose_gpu(facts, slot=slot if isinstance(slot, str) else None)
    return Nodes((KFD, gpu.render_node), gpu.groups)


def _runner(
    engine: ContainerHost, image: str, nodes: Nodes, program: Path
) -> Callable[[Command, Callable[[str], None]], Ended]:
    account = account_for(os.geteuid(), os.getegid())

    def run(command: Command, told: Callable[[str], None]) -> Ended:
        spec = ContainerSpec(
            name=f"vega-image-selftest-{os.getpid()}-{secrets.token_hex(4)}",
            image=image,
            label=LABEL_VALUE,
            user=f"{account.uid}:{account.gid}",
            entrypoint=command.argv[:1],
            command=command.argv[1:],
            env={"HOME": SCRATCH, "XDG_CACHE_HOME": SCRATCH, **command.environ},
            workdir=command.folder or "/",
            groups=nodes.groups,
            devices=nodes.devices,
            mounts=(Mount(source=program, target=PROGRAM),),
            tmpfs=(Tmpfs(target=SCRATCH),),
            memory_bytes=MEMORY,
        )
        return run_program(engine, spec, silence=command.silence, told=told)

    return run
