"""A terminal on another host where OpenSSH's client is not installed: `python -m trainwatch.sources.ssh_terminal`.

Takes the words that `SshWay` would give ssh: [-F CONFIG] [-p PORT] [-l USER] HOST COMMAND.
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator

import asyncssh

from trainwatch.sources import ssh_errors
from trainwatch.sources.channel import WayError
from trainwatch.sources.ssh import SshWay
from trainwatch.sources.ssh_settings import Address, SshSettings
from trainwatch_launcher.rundir.files import write_all

CHUNK = 1 << 14
LOST = 255
"""The exit code when there is no connection, or none any more; as OpenSSH's."""


def main() -> int:
    """Run the command there in our terminal; returns its exit code."""
    parser = argparse.ArgumentParser(prog="ssh_terminal")
    parser.add_argument("-F", dest="config")
    parser.add_argument("-p", dest="port", type=int)
    parser.add_argument("-l", dest="user")
    parser.add_argument("host")
    parser.add_argument("command")
    options = parser.parse_args()
    way = SshWay(Address(options.host, options.user, options.port), SshSettings(options.config))
    try:
        return asyncio.run(_run(way, options.command))
    except WayError as error:
        print(f"trainwatch: {way.name}: {error}", file=sys.stderr)
    except (OSError, asyncssh.Error) as error:
        print(f"trainwatch: {way.name}: {ssh_errors.reason(error)}", file=sys.stderr)
    return LOST


async def _run(way: SshWay, command: str) -> int:
    connection = await way.connect()
    keys, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    try:
        size = os.get_terminal_size(keys)
        process = await connection.create_process(
            command, encoding=None, term_type=os.environ.get("TERM", "dumb"), term_size=(size.columns, size.lines)
        )

        def resized() -> None:
            now = os.get_terminal_size(keys)
            process.change_terminal_size(now.columns, now.lines)

        loop.add_signal_handler(signal.SIGWINCH, resized)
        loop.add_reader(keys, lambda: process.stdin.write(os.read(keys, CHUNK)))
        with _raw(keys):
            while data := await process.stdout.read(CHUNK):
                write_all(sys.stdout.fileno(), data)
            await process.wait_closed()
        return LOST if process.returncode is None else process.returncode & 0xFF
    finally:
        loop.remove_reader(keys)
        await way.close()


@contextlib.contextmanager
def _raw(fd: int) -> Iterator[None]:
    """Every key goes there, ctrl+c too."""
    before = termios.tcgetattr(fd)
    tty.setraw(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


if __name__ == "__main__":
    sys.exit(main())
