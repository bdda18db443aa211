"""The making of the tiny policy: what it reads, how it is trained, what it can do, and the card
that says so.
"""
