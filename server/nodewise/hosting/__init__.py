"""Where plugins live: the registry of what is loaded, and the one guarded call of everything that is theirs."""
