"""Text as the lab and the runtime read it: strict parallel files, tokenizers, special tokens."""
