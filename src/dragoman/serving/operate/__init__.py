"""For those who run the server: its log, its meters, and renewing keys and runs as it serves."""
