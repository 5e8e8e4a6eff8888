"""The failure cases of the job, one test per id, each with the result to expect."""
