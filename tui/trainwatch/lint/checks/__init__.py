"""The rules' conditions, by what they look at. Each is called for every command that the walk passes."""
