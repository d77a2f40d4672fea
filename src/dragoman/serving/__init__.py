"""This package serves a run of any task: requests, limits, queues and endpoints."""
