"""Makes everything that is derived anew from notes, provenance and journal, which are never touched.

`copying` puts a copy aside first, `mending` leads, `derived` and `structure` change rows and schema in one
transaction, `transplant` makes a damaged file anew, `vectors` takes what the model makes, `record` writes down that
something was changed, so that other processes notice.
"""
