"""What a server printed: all of its start-up, and later only the runtime's last words.

Nobody can send a prompt before the bridge opens, so start-up lines are safe to show; after
that a line may quote one (seen: an error about JSON repeats the body) and is dropped, unless
it is a known kind of crash. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from vega_image.engines.container import State
from vega_image.errors import HostError, UsageError, VegaError
from vega_image.serving.llama import is_crash

MOST_LINES = 5000
SHOWN_LINES = 8
LOADED = "model loaded"
NO_GPU = ("invalid device", "no ROCm-capable device")


@dataclass(slots=True)
class Heard:
    """`open_to_prompts` is set before the first prompt can arrive."""

    start: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    crash: deque[str] = field(default_factory=lambda: deque(maxlen=SHOWN_LINES))
    open_to_prompts: bool = False

    def take(self, line: str) -> bool:
        """Keep or drop one line; whether it says that the model is loaded."""
        text = line.rstrip()
        if is_crash(text):
            self.crash.append(text)
        elif not self.open_to_prompts:
            self.start.append(text)
        return not self.open_to_prompts and LOADED in text


def death(heard: Heard, state: State | None, *, model: str, gpu: bool = True) -> VegaError:
    """Return why the server ended, in words, with its last lines.

    Without a GPU the server always says that it found none; then that explains nothing.
    """
    code = None if state is None else state.exit_code
    end = "is gone" if code is None else f"ended with exit code {code}"
    if state is not None and state.oom_killed:
        msg = f"the server {end}: it needed more memory than its limit"
        return HostError("OUT_OF_MEMORY", msg, hint="--memory BYTES, or a smaller model")
    lines = _last(heard, ignored=() if gpu else NO_GPU)
    text = "\n".join(lines)
    shown = f"the server {end}" + (f"; its last lines:\n{text}" if lines else "")
    if gpu and any(words in text for words in NO_GPU):
        hint = "vega-image doctor, or --cpu to use the CPU"
        return HostError("GPU_NOT_USED", f"the server sees no GPU: {shown}", hint=hint)
    if "Unable to open /dev/kfd" in text:
        return HostError("GPU_DENIED", shown, hint="vega-image doctor")
    if not heard.open_to_prompts and "error loading model" in "\n".join(heard.start):
        msg = f"the server cannot load {model}: {shown}"
        return UsageError("MODEL_REFUSED", msg, hint="fetch it again; check --model-sha256")
    return HostError("SERVER_ENDED", shown, hint="sudo dmesg | tail, then run it again")


def _last(heard: Heard, *, ignored: tuple[str, ...]) -> list[str]:
    """Last words if there are any, else the start-up's errors, else its end."""

    def telling(lines: Iterable[str]) -> list[str]:
        return [line for line in lines if line and not any(word in line for word in ignored)]

    start = [] if heard.open_to_prompts else telling(heard.start)
    errors = [line for line in start if " E " in line[:16]]
    return (telling(heard.crash) or errors or start)[-SHOWN_LINES:]
