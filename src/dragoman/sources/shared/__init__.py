"""What kinds of sources share: settings, rows, and files in memory and in archives."""
