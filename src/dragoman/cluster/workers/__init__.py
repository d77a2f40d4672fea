"""Who does parts: processes of this machine, or actors of Ray."""
