"""A closed world of generated facts. It is exact which claims are true, which facts a policy saw in
training, and which facts it cannot know.
"""

from workbench.world.world import World, load_world

__all__ = ["World", "load_world"]
