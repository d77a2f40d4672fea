"""HTTP itself: connections, addresses, what proxies say, compression."""
