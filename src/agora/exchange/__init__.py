"""Notes as files: out of a store and into one, and out of the files of other tools."""
