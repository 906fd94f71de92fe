"""The ggml suite: exact integers through libggml, and upstream's own per-operation test."""
