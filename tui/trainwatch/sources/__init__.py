"""Where a run is read from. `base` is what the app knows of any source; every other module is one way to a run."""
