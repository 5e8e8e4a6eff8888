"""Prints what SpecForge's own loader makes of merged data. Runs in the trainers' environment.

Usage: load_specforge.py FILE… One line of JSON a record: its ids and its mask.
"""

import json
import sys

from specforge.data.prompt_builder import prepare_prompt_tasks

for path in sys.argv[1:]:
    tasks = prepare_prompt_tasks(
        path,
        None,
        chat_template=None,
        max_length=1 << 20,
        is_preformatted=False,
        train_only_last_turn=False,
        cache_dir=None,
        cache_key=None,
        num_proc=None,
    )
    for task in tasks:
        payload = task["payload"]
        print(json.dumps([list(payload["input_ids"]), list(payload["loss_mask"])]))
