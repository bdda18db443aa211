"""The names of the closed world's entities."""

from workbench.world.world import World


def names(world: World, kind: str, *tiers: str) -> list[str]:
    """The entities of a kind in the world's order, of these tiers or of all."""
    found = [entity for entity in world.entities.values() if entity.kind == kind]
    return [entity.name for entity in found if not tiers or entity.tier in tiers]
