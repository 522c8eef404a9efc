"""Nodewise: predicts the performance of distributed DNN training and serves the answers over gRPC."""
