"""Plugins in this process and in hosts: the registry of loaded plugins, and the one guarded call into them."""
