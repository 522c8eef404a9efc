"""The search over partitioning and provisioning: the best configuration before anything is built."""
