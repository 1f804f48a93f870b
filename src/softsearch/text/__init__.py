"""Text in the lab and the runtime: strict parallel files, cleaning, tokenizers, special tokens."""
