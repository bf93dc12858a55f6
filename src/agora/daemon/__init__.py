"""The shared local server: one process of a data folder that serves every agent of this machine's user.

`place` listens where nobody else may connect, `lock` sees that there is one server, `hello` reads what a session
says first, `server` serves the connections and ends when it should, `control` asks a running server from outside.
"""
