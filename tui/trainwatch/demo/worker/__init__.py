"""What each worker of the demo runs: `train.py`, a program that stands for the user's own training script.

Standard library only, any Python from 3.8 on, and no word of trainwatch: it is started as a script, by its path.
"""
