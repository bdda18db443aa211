"""The reward inspector: a page, on this machine alone, to see what every claim and every token
of a response earned.
"""

from workbench.inspector.page import Settings, build, launch

__all__ = ["Settings", "build", "launch"]
