"""The runs that the server holds, the choice of a run for a request, and the checks that all
endpoints share."""
