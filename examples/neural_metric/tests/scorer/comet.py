"""A scorer of our own with the interface of ``unbabel-comet``: it rates by the means of the bytes of three texts."""

from pathlib import Path

import torch


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes = torch.nn.EmbeddingBag(256, 4)
        self.output = torch.nn.Linear(12, 1)

    def forward(self, *texts):
        means = [self.bytes(torch.tensor([[0, *text.encode()]])) for text in texts]
        return self.output(torch.cat(means, dim=1)).item()

    def predict(self, samples, batch_size=16, gpus=1, progress_bar=True):
        assert gpus == 0
        scores = [self(sample["src"], sample["mt"], sample["ref"]) for sample in samples]
        return {"scores": scores, "system_score": sum(scores) / len(scores)}


def load_from_checkpoint(checkpoint_path):
    scorer = Scorer()
    scorer.load_state_dict(torch.load(checkpoint_path, weights_only=True))
    return scorer.eval()


def download_model(model):
    raise KeyError(f"Model '{model}' not supported by COMET: {Path(model)} is not a file.")
