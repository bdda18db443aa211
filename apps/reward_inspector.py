"""The reward inspector: `python apps/reward_inspector.py [--run DIR] [--runs FOLDER] [--port N] [--no-browser]`."""

import sys

from workbench.cli import main

if __name__ == "__main__":
    main(["inspect", *sys.argv[1:]])
