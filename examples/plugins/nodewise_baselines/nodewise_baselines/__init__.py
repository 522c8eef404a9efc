"""Published throughput models as Nodewise estimators: what anyone's predictions should be compared with."""
