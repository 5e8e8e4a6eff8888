"""Floor 3: the pages: views of the figures, templates, and the live stream of what changed."""
