"""Backups of whole stores: backup, restore, copies to another kind of store, and checks."""
