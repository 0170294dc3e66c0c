"""The viewer half of trainwatch: sources that follow a run, a pure model of it, and a terminal UI."""
