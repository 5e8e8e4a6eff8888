"""Prints what `speculators prepare-data` has written. Runs in the trainers' environment.

Usage: load_speculators.py FOLDER. One line of JSON a record, its ids and its mask; then one line
with the counts of supervised tokens by id.
"""

import json
import sys
from pathlib import Path

import torch
from datasets import load_from_disk

folder = Path(sys.argv[1])
for row in load_from_disk(str(folder)):
    ids, mask = (torch.as_tensor(row[name]).tolist() for name in ("input_ids", "loss_mask"))
    print(json.dumps([ids, mask]))
counts = torch.load(folder / "token_freq.pt", weights_only=True)
print(json.dumps({str(token): int(n) for token, n in counts.items()}))
