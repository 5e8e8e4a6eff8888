"""Floor 1: the SGLang protocol as a client sees it; raises only our errors."""
