"""Why a command failed: from the end of its output, its exit status and what the kernel says, to one kind and one line.

`diagnose(text, facts)` in `diagnose` is the way in. Nothing in here is imported before a command has failed, nothing
touches a file, and the time that it takes grows with the text that it is given and with nothing else.
"""
