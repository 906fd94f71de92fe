"""Where bytes come from: each kind of source is resolved once, locked, then fetched exactly."""
