"""What any server under a run must do: the same tests for the simulator and a real one."""
