"""The agent: one reader served over stdin and stdout, on whatever host the run directory can be read.

`frames` and `wire` are what both ends speak, `server` answers, `follow` looks at the files, and `main` starts it all.
The agent writes no file but requests in control/, and ends when its input does.
"""
