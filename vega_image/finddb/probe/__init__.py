"""A stranger's libMIOpen asked about problems: shim and probe in C, jailed, no GPU."""
