"""The door: who may come in, how, and what everybody else gets."""
