"""The client for asyncio: written here; `_sync` is generated from it, but for its seam."""
