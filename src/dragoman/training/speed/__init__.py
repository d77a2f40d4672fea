"""What of this machine trains a model the fastest, how fast that is, and how its threads wait."""
