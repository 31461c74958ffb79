"""Prints summaries and tables for people: a module for the commands of each subject."""
