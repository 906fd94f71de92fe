"""From locked packages and stage results to one tree of files, without touching a root."""
