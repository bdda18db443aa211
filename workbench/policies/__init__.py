"""Policies: load them by name, sample from them, check and export their weights."""
