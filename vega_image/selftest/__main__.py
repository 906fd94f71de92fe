"""Run the suite as `python -m vega_image.selftest`."""

import sys

from vega_image.selftest.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
