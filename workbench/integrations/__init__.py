"""Adapters of trainers outside this library that need their own module: verl."""
