"""What tests use of the machine: interpreters, launchers as real processes, a real terminal, and patience."""
