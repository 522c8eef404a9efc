"""What commands draw and write beside their answer."""
