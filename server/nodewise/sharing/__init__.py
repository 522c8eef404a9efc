"""Jobs that share a device: what is known of them gathered, a sharing model asked, its answer checked and told."""
