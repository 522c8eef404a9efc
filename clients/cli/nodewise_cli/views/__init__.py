"""What commands print: tables and JSON on standard output, everything else on standard error."""
