"""What --help prints."""
from __future__ import annotations

from trainwatch_launcher.options import OPTIONS, USAGE

HELP_HEAD = """\
Run a training command as the entry of a worker, and keep the truth about it.

  %s

Its output goes to this console and, byte for byte, to a log in the run directory; its `=== [Phase] NAME ===` lines
become events; signals reach it; its exit code is this program's exit code. When it fails, the container is held for
debugging first. Watch the run from anywhere that sees the run directory:  trainwatch DIR

  trainwatch-launch -- python train.py                      one process; the run is in ./runs
  trainwatch-launch --root /shared/runs -- bash train.sh    each worker of a platform job
  srun trainwatch-launch --root ~/runs -- python train.py   each task of a Slurm job
  trainwatch-launch --hold 0 -- torchrun train.py           never hold a failed worker
""" % USAGE

HELP_TAIL = """
Exit code: the command's own; 128+n when signal n killed it; 127 not found, 126 not executable; 2 when these options
are wrong (nothing was run then). A hold ends by its deadline, by SIGTERM (also `kill 1` in the container), or by
`trainwatch hold`, and then the original code is returned.
"""


def help_text() -> str:
    """What --help prints."""
    lines = [HELP_HEAD]
    for title, options in OPTIONS.items():
        lines.append("%s:" % title)
        for option in options:
            name = ("%s %s" % (option.flag, option.value)).rstrip()
            name += "\n" + " " * 26 if len(name) > 24 else ""
            lines.append("  %-24s %s" % (name, option.help))
            lines.append("  %-24s   [%s]" % ("", option.env))
        lines.append("")
    lines += ["Other:", "  %-24s print the version" % "--version", "  %-24s print this" % "-h, --help"]
    return "\n".join(lines) + "\n" + HELP_TAIL
