"""Values of nodewise.v1, one module a file of the contract."""
