"""Durable profiles of jobs: ingest sessions, the profile store, its writer and reader, and the trace store.

Import the module that names what you need.
"""
