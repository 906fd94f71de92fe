"""Images that prove themselves on the GPU they were built for."""

__version__ = "0.1.0"
