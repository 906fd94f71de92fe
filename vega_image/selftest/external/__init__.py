"""Suites that are programs of their own: one JSON line per case, exit status as ours."""
