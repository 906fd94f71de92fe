#!/bin/sh
# Build this folder without a network and let the image say its version. Needs `render --context`.
set -eu
cd "$(dirname "$0")/.."
engine="${VEGA_IMAGE_ENGINE:-docker}"
"$engine" build --network none -t localhost/tiny:1.0.0 .
"$engine" run --rm --network none --read-only --cap-drop ALL localhost/tiny:1.0.0 --version
