"""Objectives and losses: the numbers that training minimises."""
