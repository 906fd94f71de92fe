"""MIOpen as the sweep sees it: problems, solvers, what to set, what it says it ran."""
