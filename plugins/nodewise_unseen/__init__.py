"""Step times of models that never ran on a device: from FLOPs, parameters, tensors, activations and family."""
