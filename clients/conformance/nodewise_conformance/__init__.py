"""One conformance for the clients of all languages: scenarios as data, a real server, and one between with faults.

    python -m nodewise_conformance            # what `make conformance` runs

The page `clients/conformance/PROTOCOL.md` says what a client's executable reads and writes.
"""
