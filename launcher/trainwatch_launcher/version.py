"""The version of both packages: its only home."""
__version__ = "0.1.0"
