"""`trainwatch serve`: the screen in a browser."""
from __future__ import annotations

import argparse
import os
import secrets
import shlex
import socket
import sys

from trainwatch import browser
from trainwatch.commands.targets import find, is_remote, named
from trainwatch.model.text import printable

DESCRIPTION = """\
Show the screen in a browser. Each page that is opened gets a viewer of its own, as long as it is open. Without --bind
only this machine can reach it: from elsewhere, ssh -L 8000:localhost:8000 HOST and open http://localhost:8000 here.
"""
EPILOG = """\
Bound to another address (--bind), pages are opened with a token that is printed once ($TRAINWATCH_TOKEN sets it). What
goes over the network is not encrypted: put it behind a proxy with TLS, or better, use ssh -L. Who is in can release,
extend and stop like you. Shells are off; --allow-shell lets S open a window in the tmux that this command runs in.

exit codes: 0 when it was stopped, 1 when it could not listen, 2 when TARGET is no run that can be read.

examples:
  trainwatch serve /shared/runs/7b-42
  trainwatch serve slurm:4242 --port 9000
  trainwatch serve /shared/runs --bind 0.0.0.0
"""
MISSING = "trainwatch: the browser part is not installed: pip install 'trainwatch[serve]'"
TOKEN = "TRAINWATCH_TOKEN"
SHORTEST_TOKEN = 16


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = parser().parse_args(argv)
    try:
        from trainwatch import web
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 1
    _check(options.target)
    token = "" if web.is_loopback(options.bind) else os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    if token and len(token) < SHORTEST_TOKEN:
        print(f"trainwatch: ${TOKEN} needs {SHORTEST_TOKEN} characters or more", file=sys.stderr)
        return 1
    problem = _cannot_listen(options.bind, options.port)
    if problem:
        print(f"trainwatch: cannot listen on {options.bind} port {options.port}: {problem}", file=sys.stderr)
        return 1
    os.environ.pop("NO_COLOR", None)
    os.environ[browser.VARIABLE] = browser.SHELL if options.allow_shell else browser.SCREEN
    os.environ["COLORTERM"] = "truecolor"  # what the page's terminal can, whatever ours can
    words = [sys.executable, "-m", "trainwatch", *([options.target] if options.target else [])]
    page = web.Page(shlex.join(words), options.bind, options.port, "trainwatch", token, options.sessions)
    host = "localhost" if web.is_loopback(options.bind) else _name(options.bind)
    print(f"http://{host}:{options.port}/{f'?token={token}' if token else ''}   (ctrl+c stops)", flush=True)
    page.serve()
    return 0


def _check(target: str | None) -> None:
    """Say at once what each page would only say when it opens. Raises TargetError."""
    if target is not None and is_remote(named(target)):
        return
    find(target)


def _cannot_listen(host: str, port: int) -> str:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family[0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(family[4])
    except OSError as error:
        return printable(error.strerror or str(error))
    return ""


def _name(bind: str) -> str:
    """What others may call an address that stands for all of ours."""
    return socket.gethostname() if bind in ("0.0.0.0", "::") else f"[{bind}]" if ":" in bind else bind


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port, a number from 1 to 65535")
    return int(text)


def _sessions(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch serve`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch serve", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", nargs="?", help="what to watch, as for trainwatch itself")
    parser.add_argument("--bind", metavar="ADDRESS", default="localhost", help="where to listen (localhost)")
    parser.add_argument("--port", metavar="PORT", type=_port, default=8000, help="on which port (8000)")
    parser.add_argument("--sessions", metavar="N", type=_sessions, default=8, help="pages open at once, at most (8)")
    parser.add_argument("--allow-shell", action="store_true", help="let S open windows in this machine's tmux")
    return parser

