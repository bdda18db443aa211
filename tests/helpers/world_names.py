"""The names of the closed world's entities."""

from workbench.world.world import World


def names(world: World, kind: str, *tiers: str) -> list[str]:
    """The entities of a kind in the order of the world, of these tiers or of any."""
    found = [entity for entity in world.entities.values() if entity.kind == kind]
    return [entity.name for entity in found if not tiers or entity.tier in tiers]
