"""The pure model of a run: state, what a table row says, the summary, queries. No I/O, no clock, no screen.

`state` is the run as known so far and `apply`, the one way to the next state; the other modules say what it means at a
given time. `now` is always a parameter, in Unix seconds on the reader's clock.
"""
