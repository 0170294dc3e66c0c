"""The worker half of trainwatch: the launcher that runs a training command, and the reader of what it wrote.

Standard library only, Python 3.8 or newer, Linux. Nothing is imported here: the launcher's start-up time is part of
every training's start-up time.
"""
