"""Helper functions that all packages use: files, settings, failures, subprocesses, Ray tasks."""
