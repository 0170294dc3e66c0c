"""Entry of `python -m trainwatch_launcher`, of the packed file and of the trainwatch-launch script."""
import sys


def clean_path() -> None:
    """Keep the working directory and PYTHONPATH from replacing standard modules; only `sys` is imported so far.

    Our own place moves to the end for the same reason: site-packages may hold a stale backport of a standard module.
    """
    here = __file__.replace("\\", "/").rsplit("/", 2)[0] or "/"
    if not sys.flags.isolated:
        sys.path[:] = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]
    if here not in sys.path:
        sys.path.append(here)


clean_path()

if __name__ == "__main__":
    from trainwatch_launcher.cli import main

    main()
