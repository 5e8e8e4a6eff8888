"""Floor 1: bytes on disk: prompts, token files, shards, sealed outputs, folder ownership."""
