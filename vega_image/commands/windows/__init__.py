"""The words that make images, for a Windows target, one module each."""
