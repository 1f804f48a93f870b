"""The architectures, in plain PyTorch: one Encoder and one Decoder interface for all of them."""
