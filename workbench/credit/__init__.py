"""From reward events to what a trainer takes: the characters that each token holds, token
rewards, token advantages.
"""
