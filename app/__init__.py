"""Longwatch: runs and watches day-long generation jobs against SGLang servers."""
