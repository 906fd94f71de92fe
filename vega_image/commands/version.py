"""vega-image version: what is installed, and what of it decides bytes."""

from __future__ import annotations

import platform

from vega_image import __version__
from vega_image.clioptions import Call
from vega_image.oci.compress import tool_versions
from vega_image.spec import Codec


def show_version(call: Call) -> int:
    """Print versions."""
    tools = {name: text for codec in Codec for name, text in tool_versions(codec).items()}
    value = {"vega-image": __version__, "python": platform.python_version(), **tools}
    call.console.result([f"{name} {text}" for name, text in value.items()], {**value})
    return 0
