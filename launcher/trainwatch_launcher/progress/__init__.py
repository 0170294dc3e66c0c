"""What training output says about its progress: step, loss, rate, time left, read from the lines themselves.

`stream.points` yields every sample of a log, `latest.Watcher` gives the newest values at heartbeat time. The formats
are data: `formats_llm` and `formats_vision`. A wrong number is worse than none: what is not known is left out.
"""
