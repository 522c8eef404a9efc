"""The boundary: questions off the wire, answers on it, errors, interceptors, thin servicers. Only here is there gRPC."""
