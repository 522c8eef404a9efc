"""The console's files: a page, its script and its style, as Vite built them from ``clients/console/src``."""
