"""What each command takes, asks and shows."""
