"""The words under `vega-image finddb`, one module each."""
