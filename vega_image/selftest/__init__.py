"""What runs inside images and on workstations: a closed world.

Nothing here imports the factory, and the core needs the standard library only (Python 3.10
or later), so that the same code runs on a desk machine which has nothing installed.
"""
