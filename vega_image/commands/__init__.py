"""One module per word of the command line."""
