"""Values on command lines that several commands take."""
from __future__ import annotations

import argparse


def price_of_gpus(given: float | None) -> float | None:
    """What an hour of one GPU costs: as given on the command line, else as configured. Raises TargetError."""
    from trainwatch.config import load

    return given if given is not None else load().gpu_price


def price(written: str) -> float:
    """What an hour of one GPU costs, from 0 up. Raises ArgumentTypeError."""
    try:
        value = float(written)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number from 0 up, like 2.5, not {written!r}")
    return value
