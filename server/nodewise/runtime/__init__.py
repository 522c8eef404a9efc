"""Processes: settings, logging, the application and its life from start to drain."""
