"""Faults in start commands: shell scripts, parsed, walked as bash would run them, and judged by rules."""
