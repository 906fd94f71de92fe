from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.engines.container import State
from vega_image.errors import HostError, UsageError, VegaError
from vega_image.serving.heard import Heard, death
from vega_image.serving.llama import is_crash, placement, prove_cpu, prove_gpu


def said(project: Path, name: str) -> list[str]:
    return (project / "tests/data/serving" / f"{name}.txt").read_text().splitlines()


def refused(lines: list[str], device: str, pci: str | None = None) -> VegaError:
    with pytest.raises(HostError) as caught:
        prove_gpu(placement(lines), device, pci_address=pci)
    return caught.value


def test_all_layers_on_the_named_device_is_proof(project: Path) -> None:
    found = placement(said(project, "vulkan-all-layers"))
    assert found.layers == (31, 31)
    assert found.buffers["Vulkan0"] == pytest.approx(92.10)
    name = prove_gpu(found, "Vulkan0", pci_address="0000:03:00.0")
    assert name == "llvmpipe (LLVM 21.1.8, 256 bits)"


def test_some_layers_on_the_cpu_are_not(project: Path) -> None:
    error = refused(said(project, "vulkan-5-layers"), "Vulkan0")
    assert (error.code, error.exit_code) == ("GPU_NOT_USED", 7)
    assert "5 of 31 layers" in error.message


@pytest.mark.parametrize("name", ["silent-cpu-fallback", "cpu-device-none"])
def test_the_silent_fall_back_is_seen(project: Path, name: str) -> None:
    assert refused(said(project, name), "ROCm0").code == "GPU_NOT_USED"


def test_another_device_than_the_named_one_is_not_proof(project: Path) -> None:
    assert refused(said(project, "vulkan-all-layers"), "ROCm0").code == "GPU_NOT_USED"


@pytest.mark.parametrize("drop", ["using device", "offloaded", "Vulkan0 model buffer"])
def test_each_line_of_the_proof_is_needed(project: Path, drop: str) -> None:
    lines = [line for line in said(project, "vulkan-all-layers") if drop not in line]
    assert refused(lines, "Vulkan0").code == "GPU_NOT_USED"


def test_a_second_device_beside_the_named_one_is_refused(project: Path) -> None:
    lines = said(project, "vulkan-all-layers")
    second = [line.replace("Vulkan0", "Vulkan1") for line in lines if "using device" in line]
    assert refused([*lines, *second], "Vulkan0").code == "GPU_NOT_USED"


def test_a_card_at_another_address_is_refused(project: Path) -> None:
    lines = said(project, "vulkan-all-layers")
    there = [line.replace("unknown id", "0000:0A:00.0") for line in lines]
    assert refused(there, "Vulkan0", "0000:03:00.0").code == "WRONG_GPU"
    assert prove_gpu(placement(there), "Vulkan0", pci_address="0000:0a:00.0")


def test_the_cpu_is_named_and_a_gpu_under_cpu_refused(project: Path) -> None:
    assert prove_cpu(placement(said(project, "cpu-device-none"))).startswith("Intel(R) Xeon")
    for lines in (said(project, "vulkan-all-layers"), []):
        with pytest.raises(HostError):
            prove_cpu(placement(lines))


@given(st.lists(st.text()))
def test_any_lines_can_be_read(lines: list[str]) -> None:
    found = placement(lines)
    assert found.layers is None or found.layers[0] >= 0


PROMPT = "the secret of the blue fox"


def test_once_prompts_may_come_only_crash_lines_are_kept() -> None:
    heard = Heard()
    assert not heard.take("0.00.1 I srv load_model: loading")
    assert heard.take("0.00.2 I srv  llama_server: model loaded")
    heard.open_to_prompts = True
    heard.take(f"0.00.3 E srv operator(): got exception: parse error, last read: '{PROMPT}'")
    heard.take(f"ROCm: {PROMPT}")
    heard.take("ROCm error: out of memory")
    error = death(heard, State(running=False, exit_code=134), model="m.gguf")
    assert error.code == "SERVER_ENDED"
    assert "exit code 134" in error.message
    assert "ROCm error: out of memory" in error.message
    assert PROMPT not in error.message
    assert not [line for line in heard.start if PROMPT in line]
    assert "load_model" not in error.message


@pytest.mark.parametrize(
    ("line", "crash"),
    [
        ("/b/ggml-cuda.cu:92: ROCm error", True),
        ("ROCm error: an illegal memory access was encountered", True),
        ("Memory access fault by GPU node-1 (Agent handle: 0x1) on address (nil).", True),
        ("Unable to open /dev/kfd read-write: Permission denied", True),
        ("0.00.1 E ggml_cuda_init: failed to initialize ROCm: no ROCm-capable device", True),
        ("0.00.1 E srv x: tell me about CUDA error", False),
        ("tell me: ROCm error", False),
    ],
)
def test_what_counts_as_last_words(line: str, *, crash: bool) -> None:
    assert is_crash(line) is crash


@pytest.mark.parametrize(
    ("lines", "state", "code", "exit_code"),
    [
        (['error while handling argument "--device": invalid device: ROCm0'],
         State(running=False, exit_code=1), "GPU_NOT_USED", 7),
        (["Unable to open /dev/kfd read-write: Permission denied"],
         State(running=False, exit_code=1), "GPU_DENIED", 7),
        (["0.00.1 E llama_model_load: error loading model: tensor data is not within bounds"],
         State(running=False, exit_code=1), "MODEL_REFUSED", 2),
        (["x"], State(running=False, exit_code=137, oom_killed=True), "OUT_OF_MEMORY", 7),
        (["x"], None, "SERVER_ENDED", 7),
    ],
)  # fmt: skip
def test_a_death_at_start_is_explained(
    lines: list[str], state: State | None, code: str, exit_code: int
) -> None:
    heard = Heard()
    for line in lines:
        heard.take(line)
    error = death(heard, state, model="m.gguf")
    assert (error.code, error.exit_code) == (code, exit_code)
    assert error.hint
    assert isinstance(error, HostError | UsageError)


def test_on_the_cpu_the_missing_gpu_explains_nothing() -> None:
    heard = Heard()
    heard.take("0.00.1 E ggml_cuda_init: failed to initialize ROCm: no ROCm-capable device")
    heard.take("0.00.2 E llama_model_load: error loading model: tensor data is out of bounds")
    error = death(heard, State(running=False, exit_code=1), model="m.gguf", gpu=False)
    assert error.code == "MODEL_REFUSED"
    assert "ROCm" not in error.message
