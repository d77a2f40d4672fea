"""Settings, rows, and files in memory and in archives, which several kinds of sources share."""
