"""The page that translates in a browser, and sites with the page and models."""
