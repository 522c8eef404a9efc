"""The choice of who answers: expected errors, trials on runs held back, shares of a mixture."""
