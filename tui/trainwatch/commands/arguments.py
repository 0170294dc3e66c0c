"""Values on command lines that several commands take."""
from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from trainwatch.model import naming

if TYPE_CHECKING:
    from trainwatch.alarm import Alarm
    from trainwatch.config import Options


def price_of_gpus(given: float | None) -> float | None:
    """What an hour of one GPU costs: as given on the command line, else as configured. Raises TargetError."""
    from trainwatch.config import load

    return given if given is not None else load().gpu_price


def alarm_for(on_failure: tuple[str, ...] | None, no_notify: bool, configured: Options | None = None) -> Alarm:
    """What is done on the first failure: as the command line says, else as configured (for all, or for one target)."""
    from trainwatch.alarm import Alarm, parsed
    from trainwatch.config import load

    options = configured if configured is not None else load().options
    return Alarm(options.notify and not no_notify, parsed(options.on_failure) if on_failure is None else on_failure)


def command(written: str) -> tuple[str, ...]:
    """A command line as arguments. Raises ArgumentTypeError."""
    from trainwatch.alarm import parsed

    try:
        return parsed(written)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error} in {written!r}") from None


def price(written: str) -> float:
    """What an hour of one GPU costs, from 0 up. Raises ArgumentTypeError."""
    try:
        value = float(written)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number from 0 up, like 2.5, not {written!r}")
    return value


def ranks(written: str) -> tuple[naming.Name, ...]:
    """Ranks as a person names them. Raises ArgumentTypeError."""
    try:
        return naming.parse(written)
    except naming.NamingError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
