"""`trainwatch demo`: a real training of several workers to watch, without a GPU.

`command` is the command line, `job` starts the workers, waits for them and stops them, and the folder `worker` holds
the training script that each of them runs.
"""
