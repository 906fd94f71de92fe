from __future__ import annotations

from pathlib import Path

import pytest

from tests.workstation import assemble, facts_of
from vega_image.errors import HostError
from vega_image.serving.gpu import choose_gpu


def test_the_radeon_vii_is_chosen_with_its_numeric_groups(tmp_path: Path) -> None:
    root = assemble(tmp_path)
    gpu = choose_gpu(facts_of(root))
    assert gpu.render_node == Path("/dev/dri/renderD128")
    assert set(gpu.groups) == {(root / "dev/kfd").stat().st_gid} - {0}
    assert gpu.pci_address is not None
    assert choose_gpu(facts_of(root), slot=gpu.pci_address) == gpu


@pytest.mark.parametrize(
    ("overlay", "code"),
    [
        ("no-gpu", "NO_GPU"),
        ("wrong-gpu-gfx1030", "WRONG_GPU"),
        ("vram-8g", "VRAM_TOO_SMALL"),
        ("no-pcie-atomics", "NO_PCIE_ATOMICS"),
    ],
)
def test_a_machine_that_cannot_is_refused_with_reason_and_fix(
    tmp_path: Path, overlay: str, code: str
) -> None:
    with pytest.raises(HostError) as caught:
        choose_gpu(facts_of(assemble(tmp_path, overlay)))
    assert (caught.value.code, caught.value.exit_code) == (code, 7)
    assert caught.value.hint is not None
    assert "--cpu" in caught.value.hint


@pytest.mark.parametrize("overlay", ["sramecc-off", "mi50-as-66af", "mi50-66a1-sramecc"])
def test_its_siblings_are_accepted(tmp_path: Path, overlay: str) -> None:
    assert choose_gpu(facts_of(assemble(tmp_path, overlay))).render_node.name == "renderD128"


def test_an_unknown_slot_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        choose_gpu(facts_of(assemble(tmp_path)), slot="0000:ff:00.0")
    assert caught.value.code == "NO_SUCH_CARD"


def test_the_user_s_own_groups_and_variables_do_not_matter(tmp_path: Path) -> None:
    root = assemble(tmp_path)
    for node in ("dev/kfd", "dev/dri/renderD128"):
        (root / node).chmod(0o600)
    gpu = choose_gpu(facts_of(root, {"HSA_OVERRIDE_GFX_VERSION": "9.0.0"}))
    assert gpu.render_node.name == "renderD128"
