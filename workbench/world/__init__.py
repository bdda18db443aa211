"""A closed world of generated facts about invented people, cities, companies and books.

Three things are known exactly: which claims are true, which facts a policy saw in training, and
which facts the policy cannot know.
"""

from workbench.world.world import World, load_world

__all__ = ["World", "load_world"]
