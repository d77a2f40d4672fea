"""HTTP itself: connections and limits, what surrounds a request, how answers are written."""
