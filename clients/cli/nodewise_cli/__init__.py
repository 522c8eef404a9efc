"""Commands, tables and plots: each is a client of the service, of an embedded one unless ``--server`` names another."""
