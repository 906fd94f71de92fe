"""The right answers of the ggml suite, made by numpy: what its golden hashes are taken from."""
