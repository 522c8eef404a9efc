"""How good predictions are: backtests over tables of measurements, and their scores."""
