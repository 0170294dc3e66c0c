"""From a start script to a better one: edits on the bytes of what was parsed, each with its reason."""
