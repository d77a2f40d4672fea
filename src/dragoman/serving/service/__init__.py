"""What all endpoints share: the runs that are served, which of them is asked, and who may ask."""
