"""Values of nodewise.v1beta1, one module a file of the contract."""
