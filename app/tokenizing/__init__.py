"""The second phase of intake: scanned samples get their token ids, ahead of the dispatcher.

Owns the order of a partition's token file and when its samples become claimable. Which ids a
prompt has is `app.prompt_tokens`. Invariant: what the ledger says of the token file stands in it,
synced; a death at any point costs at most one batch of `/tokenize` calls.
"""

from app.tokenizing.keeper import TokenizingKeeper, TokenizingStopped
from app.tokenizing.partition import TokenizeOrder, tokenize_partition
from app.tokenizing.servers import TokenizeServers

__all__ = [
    "TokenizeOrder",
    "TokenizeServers",
    "TokenizingKeeper",
    "TokenizingStopped",
    "tokenize_partition",
]
