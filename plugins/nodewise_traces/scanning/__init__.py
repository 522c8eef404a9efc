"""From bytes to rows: streams of JSON in bounded memory, whatever is damaged in them."""
