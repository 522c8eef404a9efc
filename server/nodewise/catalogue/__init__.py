"""Devices and links: facts with sources, to which users add their own (ADR 13)."""
