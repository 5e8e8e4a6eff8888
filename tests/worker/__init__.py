"""Floor 2 under test: one worker, inline, against the simulator and a real ledger."""
