"""The choice of who answers: expected errors, and shares of a mixture."""
