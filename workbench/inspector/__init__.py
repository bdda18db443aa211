"""The reward inspector: a local page that shows the rewards of every claim and every token."""

from workbench.inspector.page import Settings, build, launch

__all__ = ["Settings", "build", "launch"]
