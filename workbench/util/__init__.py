"""Files, settings, processes and machines: what every package may use."""
