"""The boundary: wire to domain and back, errors, interceptors, thin servicers. Only here is there protobuf or gRPC."""
