"""Charts that the server draws as SVG. Each chart also has a table."""
