"""A run that is made up: the real format at real rates, for measuring and drawing what no machine here could run."""
