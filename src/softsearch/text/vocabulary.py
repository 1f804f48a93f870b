"""The special tokens, the same in every vocabulary, model, bundle and search."""

PAD = 0
UNK = 1
BOS = 2
EOS = 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
