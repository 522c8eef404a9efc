"""The client for threads: generated from `_async` by tools/generate_sync_client.py, but for its seam."""
