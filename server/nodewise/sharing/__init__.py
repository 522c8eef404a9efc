"""Jobs that share a device: gathers their facts, calls a sharing model, and checks and explains its answer."""
