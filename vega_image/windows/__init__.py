"""Windows targets: what is rendered, and the facts it stands on."""
