"""The values of Nodewise: frozen, typed, and columns (NumPy) where there are many.

No I/O, no protobuf, no pluggy. Import from the single modules.
"""
