"""Accuracy of predictions: backtests over tables of measurements, and their scores."""
