"""Imported by every Python that a command starts (--faulthandler): has it write its stacks to memory on a signal.

Python imports what is called so at its start, from the first place that has it; whatever else is called so, further on
in the path, is imported then. Nothing is printed, nothing fails, and no module is imported that takes time.
"""
import sys


def arm():  # noqa: ANN201 - every Python that there is must be able to read this
    # type: () -> None
    """Register the signal, unless somebody uses it already; the file is named by its own descriptor."""
    import faulthandler
    import os

    _signal = __import__("_signal")  # the module `signal` takes a hundred times as long
    number = int(os.environ["TRAINWATCH_STACKS"])
    if _signal.getsignal(number) != _signal.SIG_DFL:
        return
    for place in range(240, 256):  # few programs care for a descriptor of such a number
        try:
            os.fstat(place)
        except OSError:
            break
    made = os.memfd_create("trainwatch-stacks-%d" % place)
    opened = os.open("/proc/self/fd/%d" % made, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    os.dup2(opened, place, False)
    os.close(opened)
    os.close(made)
    faulthandler.register(number, file=place, all_threads=True, chain=False)


def hand_on():  # noqa: ANN201
    # type: () -> None
    """Import the next module of our name, if there is one; our own place has nothing else."""
    here = __file__.replace("\\", "/").rpartition("/")[0]
    sys.path[:] = [path for path in sys.path if path != here]
    ours = sys.modules.pop(__name__, None)
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", None) not in (None, __name__):
            raise
    finally:
        if ours is not None:  # the import that goes on now looks for it
            sys.modules.setdefault(__name__, ours)


if __name__ == "sitecustomize":
    try:
        arm()
    except Exception:  # noqa: BLE001 - whatever it is, the program that starts here is not to know of it
        pass
    hand_on()
