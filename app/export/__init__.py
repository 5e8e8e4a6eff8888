"""From answers to training data: `longwatch merge`. Nothing of a run is changed here."""
