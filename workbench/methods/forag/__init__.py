"""FoRAG (arXiv 2406.13779): outlined answers from passages, rewards for sentences and claims."""
