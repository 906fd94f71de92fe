"""An image's server in the sandbox, a key-checked bridge to it on 127.0.0.1, a chat page."""
