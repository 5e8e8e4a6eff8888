"""The suite: a package, so that a folder named like a library never hides that library."""
