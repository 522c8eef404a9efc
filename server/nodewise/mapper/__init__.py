"""Values of the domain as messages of the contract and back. Of what lies below rpc only this knows messages."""
