"""Convolutions, forward and both gradients."""
