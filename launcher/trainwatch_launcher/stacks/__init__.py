"""The stacks of a command's processes: by py-spy, by faulthandler where that was armed, and what the kernel tells.

`taking` puts it together, in a thread beside everything else; `arming` is what `--faulthandler` does before the start,
all that is imported then.
"""
