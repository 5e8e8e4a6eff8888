"""Open files: raises the soft limit as far as it may, and says how many calls that allows."""

import resource

# Ledger, shard, logs, listening sockets, control connections and a margin.
_SPARE_FILES = 64


def clamp_to_open_files(wanted: int) -> tuple[int, str]:
    """Return (how many connections may be open at once, a notice if that is fewer than wanted)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        target = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, target), hard))
        soft = max(soft, target)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted, ""
    allowed = max(1, soft - _SPARE_FILES)
    notice = f"concurrency {wanted} is held at {allowed}: the limit of open files is {soft}"
    return allowed, f"{notice} (raise it with ulimit -n)"
