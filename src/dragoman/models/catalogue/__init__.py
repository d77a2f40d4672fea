"""Networks by the kind that a recipe names, heads over them, and the fastest way to run one."""
