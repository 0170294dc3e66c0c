"""Reading a run directory: incremental, tolerant, and the same for every source that the viewer has.

`changes` says what a reader tells, `directory` follows the small files, `log` reads ranges of output, `requests` writes
control files.
"""
