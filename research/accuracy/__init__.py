"""How right every estimator is where it has seen nothing of the source: `score_accuracy.py` runs it."""
