"""HTTP server and browser page: lines of many clients are batched and translated by worker processes."""
