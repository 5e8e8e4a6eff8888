"""Tests which need a real server of their own; script/test-sglang runs them."""
