"""The boundary: questions in, answers out, errors, interceptors, thin servicers. Only here is there gRPC."""
