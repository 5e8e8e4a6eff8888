"""Tests of our own reader and client; the folder is not called sglang, which is a library."""
