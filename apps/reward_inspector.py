"""The reward inspector, with the options of `workbench inspect`: `python
apps/reward_inspector.py [--run DIR] [--port N] …`.
"""

import sys

from workbench.cli import main

if __name__ == "__main__":
    main(["inspect", *sys.argv[1:]])
