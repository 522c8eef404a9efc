"""Interfaces that upper layers implement, and settings that lower layers read."""
