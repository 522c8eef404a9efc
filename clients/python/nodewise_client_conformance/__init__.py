"""The Python client's executable of the conformance of all clients: clients/conformance/PROTOCOL.md.

    python -m nodewise_client_conformance

Lines in, lines out; everything goes through the public face of `nodewise_client.AsyncClient`.
"""
