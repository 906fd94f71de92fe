"""The suites: what is asked of a device and what the answer must be. numpy lives here."""
