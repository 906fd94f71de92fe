"""Static checks of a rendered target: no device, no engine, no network."""
