"""The reward inspector: a local page that shows the rewards of every claim and every token."""
