"""Engines for training and generation whose packages need separate environments.

`make test-engines` builds `.engines/NAME` with the pins in NAME.txt and runs test_NAME.py there;
elsewhere these tests are skipped.
"""
