"""Where the time of recorded steps goes, and what would buy it back."""
