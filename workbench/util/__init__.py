"""Files, settings, failures, subprocesses and Ray tasks for all packages."""
