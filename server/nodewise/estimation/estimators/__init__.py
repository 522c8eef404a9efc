"""Calls to the loaded estimators: their input, their answers, and checks of these answers."""
