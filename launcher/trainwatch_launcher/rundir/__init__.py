"""The run directory, format 1: its single home.

`paths` knows every file name, `records` every record, `files` how they are written and read, `state` what an attempt's
facts mean. Nothing else in trainwatch names a file of the run directory or a field of its records.
The format is described for people in docs/run-directory.md.
"""
