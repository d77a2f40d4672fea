"""The operation of a server: its settings, log, metrics and middleware."""
