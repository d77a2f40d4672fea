"""What everything else stands on: errors, files, and numbers and words for people."""
