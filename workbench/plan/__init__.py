"""What a training needs before it is begun: memory by phase, tokens, hours, and what to change
where it does not fit.
"""

from workbench.plan.answer import plan
from workbench.plan.gpus import GPUS
from workbench.plan.shapes import Shape, shape_of

__all__ = ["GPUS", "Shape", "plan", "shape_of"]
