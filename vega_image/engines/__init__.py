"""Who builds a step. One file per builder; none of them knows which target it serves."""
