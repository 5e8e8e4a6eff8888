"""Floor 2: the loop of one worker: claim, dispatch, settle, heartbeat."""
