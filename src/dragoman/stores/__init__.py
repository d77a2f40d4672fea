"""Where inputs are read and parts are written: folders, object stores, and addresses of the web."""
