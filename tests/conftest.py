"""Settings of the whole suite: how hypothesis searches, and nothing else.

Examples are the same in every run (a failure is a fact, not luck), and a slow machine fails none.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")
