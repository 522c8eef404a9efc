"""What commands read: options, tables, documents and traces."""
