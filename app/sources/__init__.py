"""From datasets to prompts: what `longwatch prepare` does.

`contract` says what a recipe is, `conversations` what every recipe shares, `recipes/` holds one
short file per source shape. Reading files, choosing rows and writing partitions stand beside them.
"""
