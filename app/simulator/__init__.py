"""A server that speaks SGLang's HTTP protocol without a model: for the demo and for every test.

Owns the toy tokenizer, deterministic answers, a scheduler with a KV pool in simulated time, and
faults on order. Knows nothing of Longwatch itself: it imports only `app.clock`.
"""
