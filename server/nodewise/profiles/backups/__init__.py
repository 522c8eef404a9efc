"""Whole stores: copied out, brought back, carried from one kind to another, and checked."""
