"""Floor 2: asks the servers of live runs what their counters say, and remembers the answer.

Owns the looks, one server's history (`watch`), whether it is there (`presence`), and what of it
is noted in the ledger (`notebook`). Invariant: a hung server or a locked ledger delays no look at
another server, and no figure is made up for what was not told.
"""

from app.poller.poller import Poller

__all__ = ["Poller"]
