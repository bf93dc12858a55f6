"""What `agora serve` is to a client: a process that starts in some 15 ms and passes lines to the shared server.

Only the standard library, and as little of it as can be: every agent's session begins with this. `arguments` reads
the command line, `places` knows where the server is, `words` the little JSON that is needed, `reaching` finds or
starts the server, `relay` passes the lines and sees a session through the server's end.
"""
