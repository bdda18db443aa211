"""A closed world whose facts are generated here: what is true, what a policy was shown and what
it cannot know is exact.
"""

from workbench.world.world import World, load_world

__all__ = ["World", "load_world"]
