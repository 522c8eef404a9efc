"""HTTP/JSON over the same handlers as gRPC: the Connect protocol, and REST by the contract's annotations."""
