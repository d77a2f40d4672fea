"""What is done to lines, and the parts that come of it: the plan, one part, and which stand."""
