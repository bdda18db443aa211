"""FoRAG (arXiv 2406.13779): outlined answers from retrieved passages, rewards for sentences and claims."""
