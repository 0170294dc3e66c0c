"""Asks a launcher for something: one file in its control directory, moved in by rename."""
from __future__ import annotations

import errno
import os
import pwd
import time as clock

from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import encode, write_all
from trainwatch_launcher.rundir.records import Request

COMMANDS = ("release", "extend", "signal", "stop", "stacks")
SUFFIX = ".json"

CAUSES = {
    errno.ENOENT: "the attempt's directory is gone; the run directory was moved or removed",
    errno.ENOTDIR: "%s is not a directory; its launcher cannot be asked for anything",
    errno.ELOOP: "%s is a link, which its launcher does not follow; its launcher cannot be asked for anything",
    errno.EROFS: "%s is on a file system that is mounted read-only here; ask from the worker's host",
    errno.ENOSPC: "no space left for %s; free some and ask again",
    errno.EDQUOT: "your quota for %s is used up; free some space and ask again",
}


class RequestError(Exception):
    """A request cannot be made; the message is one line that names the cause and the fix."""


def write_request(
    attempt_directory: str, command: str, seconds: float | None = None, signal: str | None = None, by: str = ""
) -> str:
    """Ask an attempt's launcher for `release`, `extend` (by `seconds`), `signal`, `stop` or `stacks`.

    Returns the request's id, which the launcher's `control` event answers. `by` says who asks: user@host, by default
    ours. Raises RequestError.
    """
    if command not in COMMANDS:
        raise RequestError("a launcher knows no %s; it knows %s" % (command, ", ".join(COMMANDS)))
    if command == "extend" and not (seconds is not None and 0 < seconds < float("inf")):
        raise RequestError("extend needs a number of seconds above 0")
    if command == "signal" and not signal:
        raise RequestError("signal needs the signal's name, such as SIGUSR1")
    identity = "%x-%s" % (clock.time_ns(), os.urandom(4).hex())
    request = Request(
        id=identity, command=command, by=by or whoami(), time=clock.time(), seconds=seconds, signal=signal
    )  # fmt: skip
    control = os.path.join(attempt_directory, paths.CONTROL)
    try:
        _put(control, identity + SUFFIX, encode(request), _owner(attempt_directory))
    except OSError as error:
        raise RequestError(_sentence(error, control, attempt_directory)) from None
    return identity


def withdraw_request(attempt_directory: str, identity: str) -> bool:
    """Take a request back that has not been answered, so that no launcher finds it later.

    False when it is not there any more: the launcher has taken it, or the attempt is gone. Raises RequestError.
    """
    control = os.path.join(attempt_directory, paths.CONTROL)
    if not identity or os.path.basename(identity) != identity:
        raise RequestError("%s is no request" % identity)
    try:
        directory = os.open(control, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise RequestError(_sentence(error, control, attempt_directory)) from None
    try:
        os.unlink(identity + SUFFIX, dir_fd=directory)
        return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RequestError(_sentence(error, control, attempt_directory)) from None
    finally:
        os.close(directory)


def whoami() -> str:
    """user@host, for the record."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user without a name
        user = str(os.geteuid())
    return "%s@%s" % (user, os.uname().nodename)


def _owner(attempt_directory: str) -> int:
    """The launcher's user. A request of anybody but that user or root would be ignored: said before it is made."""
    owner = os.stat(attempt_directory).st_uid
    if os.geteuid() not in (0, owner):
        raise RequestError("the run belongs to user %s; ask as that user or as root" % _name(owner))
    return owner


def _put(control: str, name: str, data: bytes, owner: int) -> None:
    """Write a file completely under another name, then rename it; through a descriptor, so that no link leads away."""
    directory = os.open(control, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        draft = ".%s.tmp" % name
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)
        try:
            write_all(fd, data)
            if owner != os.geteuid():
                os.fchown(fd, owner, -1)  # root asks; the launcher is not root and must be able to read it
            os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            os.unlink(draft, dir_fd=directory)
            raise
        finally:
            os.close(fd)
    finally:
        os.close(directory)


def _sentence(error: OSError, control: str, attempt_directory: str) -> str:
    if error.errno == errno.ENOENT and os.path.isdir(attempt_directory):
        return "%s is missing: its launcher takes no requests (it could not make the directory)" % control
    if error.errno in (errno.EACCES, errno.EPERM):
        return "no permission to write in %s; ask as the user that started the run, or as root" % control
    cause = CAUSES.get(error.errno or 0, "%%s cannot be written: %s" % str(error.strerror).replace("%", "%%"))
    return cause % control if "%s" in cause else cause


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
