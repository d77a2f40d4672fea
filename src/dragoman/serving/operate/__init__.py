"""For those who run the server: its log, and taking up keys and runs anew while it serves."""
