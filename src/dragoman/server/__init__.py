"""The server: its process, its application, and the endpoints that belong to no task."""
