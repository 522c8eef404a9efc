"""Seams that the upper rooms implement, and the settings that the lower rooms read."""
