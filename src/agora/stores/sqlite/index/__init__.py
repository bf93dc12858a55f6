"""The default vector index: exact two-stage search over immutable files that all processes share.

`following` keeps it in step with the journal, `view` searches, `segment` and `generation` are the files,
`compacting` writes them, `checking` compares them with the rows.
"""
