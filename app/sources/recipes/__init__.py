"""One short file for each shape of source: its name, the columns that show it, how a row is read.

A new file is all it takes: it makes a `RECIPE` (see `app.sources.contract`), mostly out of
`app.sources.turns`, and `longwatch prepare` knows it by its name.
"""
