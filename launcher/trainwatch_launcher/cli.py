"""The launcher's entry: options, who we are, and then the supervisor. What is imported here delays every training."""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

USAGE_ERROR = 2


def main(mask: set[int] | None = None) -> NoReturn:
    """Run the launcher with the process's own arguments, and end the process.

    `mask`: what was blocked before all signals were; None when they are not blocked yet.
    """
    code = launch(sys.argv[1:], mask)
    # not sys.exit: a thread may hang in a dead file system, and must not keep the exit code from the platform
    os._exit(code)


def launch(arguments: list[str], mask: set[int] | None) -> int:
    """Everything from the command line to the exit code."""
    from trainwatch_launcher import child, signals

    closed = child.fill_standard_descriptors()
    taken = signals.Taken(mask)
    from trainwatch_launcher import options as command_line

    word = arguments[0] if arguments else ""
    if word in ("-h", "--help"):
        from trainwatch_launcher.usage import help_text

        return print_out(help_text())
    if word == "--version":
        from trainwatch_launcher.version import __version__

        return print_out("trainwatch-launch %s\n" % __version__)
    from trainwatch_launcher.identity import discover, own_environment

    environ = own_environment(command_line.environment())
    try:
        options = command_line.parse(arguments, environ)
    except command_line.UsageError as error:
        os.write(2, ("trainwatch-launch: %s\n" % error).encode("utf-8", "backslashreplace"))
        return USAGE_ERROR

    from trainwatch_launcher import rescue

    supervisor = None
    try:
        from trainwatch_launcher.attempt import place_of
        from trainwatch_launcher.supervisor import Supervisor
        from trainwatch_launcher.worker import Worker

        child.settle_in()
        identity = discover(options, environ)
        worker = Worker(options, identity, place_of(options, identity, environ), taken)
        if 1 in closed:
            worker.console.abandon("standard output was closed")
        supervisor = Supervisor(worker)
        return supervisor.run()
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in here, the training runs and its code is returned
        if supervisor is None or not supervisor.pid:
            return rescue.become(options.command, taken, str(error) or repr(error))
        return rescue.see_through(supervisor, traceback_of(error))


def traceback_of(error: Exception) -> str:
    """A fault of ours for a report; without the traceback when even that fails."""
    try:
        import traceback

        return "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # noqa: BLE001 - our files may have been replaced meanwhile
        return repr(error)


def print_out(text: str) -> int:
    """Print a text to standard output; 0, also when nobody reads it."""
    try:
        os.write(1, text.encode("utf-8", "backslashreplace"))
    except OSError:
        pass
    return 0
