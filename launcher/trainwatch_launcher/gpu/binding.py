"""nvidia-ml-py, NVIDIA's Python binding of NVML: where to find one, and calls whose failures say what to do next."""
from __future__ import annotations

import importlib
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping

    from typing_extensions import Protocol

    class Binding(Protocol):
        """The module `pynvml`, which has no types of its own; all functions are looked up by name."""

        NVMLError: type[Exception]

        def nvmlInit(self) -> None:
            """Load the library and connect to the driver."""

        def nvmlShutdown(self) -> None:
            """Let go of the driver."""


MODULE = "pynvml"
FILES = ("pynvml.py", "pynvml/__init__.py")

UNSUPPORTED, LOST, GONE, PASSING = "unsupported", "lost", "gone", "passing"
"""What a failed call means: never ask this again, this GPU is lost, the driver is gone, try again later."""

KINDS = {
    1: GONE,  # UNINITIALIZED
    2: UNSUPPORTED,  # INVALID_ARGUMENT: what old drivers say to questions that they do not know
    3: UNSUPPORTED,  # NOT_SUPPORTED
    4: UNSUPPORTED,  # NO_PERMISSION
    9: GONE,  # DRIVER_NOT_LOADED
    12: GONE,  # LIBRARY_NOT_FOUND
    13: UNSUPPORTED,  # FUNCTION_NOT_FOUND
    15: LOST,  # GPU_IS_LOST
    18: GONE,  # LIB_RM_VERSION_MISMATCH: the driver was replaced under us
    25: UNSUPPORTED,  # ARGUMENT_VERSION_MISMATCH
    26: UNSUPPORTED,  # DEPRECATED
}
TIMEOUT, MISMATCH = 10, 18
LONGEST_PAUSE = 60.0
"""Seconds after which a call that keeps failing is tried again at the latest."""


class Absent(Exception):
    """There is no usable binding; the message says why in a few words."""


class Failed(Exception):
    """An NVML call failed; `kind` says what that means, `code` is NVML's number or None."""

    def __init__(self, function: str, kind: str, code: int | None, text: str) -> None:
        super().__init__("%s: %s" % (function, text))
        self.kind, self.code, self.text = kind, code, text


def load(environ: Mapping[str, str]) -> Binding:
    """The binding: our own (packed, or installed where we are), else the one of an interpreter that is at hand.

    It is one file of plain Python that serves every version, so another interpreter's copy will do. Nothing is run to
    find it, and PYTHONPATH does not count. Raises Absent.
    """
    problem = ""
    for directory in ("", *places(environ)):
        if directory and not any(os.path.exists(os.path.join(directory, name)) for name in FILES):
            continue
        if directory:
            sys.path.append(directory)
        try:
            binding: Binding = importlib.import_module(MODULE)
            binding.nvmlInit, binding.nvmlShutdown, binding.NVMLError  # noqa: B018 - what other modules of the name lack
            return binding
        except Exception as error:  # noqa: BLE001 - somebody's half-installed package must not end us
            if directory:
                sys.path.remove(directory)
                problem = problem or "%s: %s" % (directory, error)
            sys.modules.pop(MODULE, None)
    raise Absent(problem or "nvidia-ml-py is not installed (pip install nvidia-ml-py)")


def places(environ: Mapping[str, str]) -> Iterator[str]:
    """Directories of installed packages: of our interpreter, of the `python3` on PATH, of the system, of the user."""
    import glob

    executables = [sys.executable or "", which("python3", environ), which("python", environ), "/usr/bin/python3"]
    executables += [os.path.realpath(path) for path in executables if path]
    prefixes = [os.path.dirname(os.path.dirname(path)) for path in executables if path]
    home = environ.get("HOME", "")
    prefixes += [sys.prefix, "/usr/local", os.path.join(home, ".local") if home else ""]
    seen = set()
    for prefix in prefixes:
        if not prefix or prefix in seen:
            continue
        seen.add(prefix)
        for kind in ("site-packages", "dist-packages"):
            yield from sorted(glob.glob(os.path.join(glob.escape(prefix), "lib*", "python3*", kind)), reverse=True)


def which(name: str, environ: Mapping[str, str]) -> str:
    """The program of this name on PATH; empty when there is none."""
    for directory in environ.get("PATH", "").split(":"):
        path = os.path.join(directory, name)
        if os.path.isabs(path) and os.access(path, os.X_OK):
            return path
    return ""


class Watch:
    """What is being asked of the driver, and since when: what a watchdog in another thread looks at."""

    def __init__(self) -> None:
        self.function = ""
        self.gpu: int | None = None
        self.since = 0.0
        """Monotonic time at which the call began; 0 when there is none."""

    def waiting(self) -> float:
        """Seconds that the call has taken so far."""
        since = self.since
        return time.monotonic() - since if since else 0.0


class Nvml:
    """NVML through the binding. Functions are named as NVML's, without version suffixes unless asked for."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self.watch = Watch()

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a function. Raises Failed, whatever goes wrong."""
        try:
            return getattr(self._binding, function)(*arguments)
        except AttributeError as error:
            raise Failed(function, UNSUPPORTED, None, "this nvidia-ml-py has no such function") from error
        except self._binding.NVMLError as error:
            code = getattr(error, "value", None)
            raise Failed(function, KINDS.get(code or 0, PASSING), code, str(error)) from error
        except Exception as error:
            # an unversioned function that this driver lacks (NVMLLibraryMismatchError), arguments that this binding
            # does not take, structures that it reads wrongly
            raise Failed(function, UNSUPPORTED, None, str(error)) from error

    def watched(self, gpu: int | None, function: str, *arguments: Any) -> Any:
        """As `call`, in the one thread that the watchdog looks after. Raises Failed."""
        watch = self.watch
        watch.function, watch.gpu, watch.since = function, gpu, time.monotonic()
        try:
            return self.call(function, *arguments)
        finally:
            watch.since = 0.0


class Questions:
    """The questions to one GPU. Those that it cannot answer are remembered, and not asked again every second."""

    def __init__(self, nvml: Nvml, gpu: int) -> None:
        self._nvml, self._gpu = nvml, gpu
        self._not_before: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def ask(self, function: str, *arguments: Any, key: str = "") -> Any:
        """The answer, or None when there is none. `key` tells questions of one function apart.

        Raises Failed only when the GPU is lost or the driver gone.
        """
        key = key or function
        if self._not_before and self._not_before.get(key, 0.0) > time.monotonic():
            return None
        try:
            answer = self._nvml.watched(self._gpu, function, *arguments)
        except Failed as failure:
            if failure.kind in (LOST, GONE):
                raise
            self._remember(key, failure)
            return None
        if self._failures:
            self._failures.pop(key, None)
        return answer

    def first(self, *questions: tuple[Any, ...]) -> Any:
        """The answer to the first of several questions (function, arguments…) that gets one."""
        for function, *arguments in questions:
            answer = self.ask(function, *arguments, key="%s/%d" % (function, len(arguments)))
            if answer is not None:
                return answer
        return None

    def _remember(self, key: str, failure: Failed) -> None:
        if failure.kind == UNSUPPORTED:
            self._not_before[key] = float("inf")
            return
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        self._not_before[key] = time.monotonic() + min(LONGEST_PAUSE, 2.0 ** min(failures - 1, 6) - 1)
