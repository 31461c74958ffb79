"""Recipes: a short file that says what a data set is and what its records
hold (docs/recipes.md).
"""
