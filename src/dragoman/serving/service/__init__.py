"""The runs that the server holds, the choice of a run for a request, the checks that all endpoints
share, and the processes that read and write the documents of clients."""
