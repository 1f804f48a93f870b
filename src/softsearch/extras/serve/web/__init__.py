"""The page that translates in a browser, and sites that hold it with models."""
