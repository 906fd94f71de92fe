"""Device code inside host files: read it, count it, leave out what no card here can run."""
