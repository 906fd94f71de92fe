"""The .wsl archive: what is asked for, what is added, how it is written and judged."""
