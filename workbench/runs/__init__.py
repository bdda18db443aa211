"""Read and write run folders: checkpoints, metrics and stored feedback (graded responses)."""
