"""Values that flow through Nodewise: frozen, typed, column-wise (NumPy) where there are many.

No I/O, no protobuf, no pluggy. Import the module that names what you need.
"""
