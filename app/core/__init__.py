"""Floor 0: decisions as pure functions of values. Standard library only; no I/O, no clock."""
