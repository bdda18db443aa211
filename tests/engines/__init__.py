"""Engines that the library trains and generates with and that need packages of their own: each
in an environment of its own.

`make test-engines` builds `.engines/NAME` by the pins of NAME.txt and runs test_NAME.py there;
elsewhere those tests skip.
"""
