"""The README of a bundle."""

from collections.abc import Mapping
from typing import Any

_ROWS = ("model", "parameters", "data", "languages", "steps")


def model_card(name: str, facts: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """What the model is, how it was trained, how good it is and how to use it, in Markdown.

    Args:
        name: of the bundle.
        facts: the training facts of its manifest; ``results`` are scores, ``config`` is left to the manifest.
        sizes: bytes of each file.
    """
    trained = "".join(f"| {row} | {facts[row]} |\n" for row in _ROWS if row in facts)
    scores = {key: value for key, value in facts.get("results", {}).items() if not key.startswith(("train/", "model/"))}
    results = "".join(f"| {key} | {value:.3f} |\n" for key, value in scores.items())
    files = "".join(f"| {file} | {size:,} |\n" for file, size in sizes.items())
    tested = f"## Results\n\n| figure | value |\n|---|---|\n{results}\n" if results else ""
    return (
        f"# {name}\n\nA translation model, exported by softsearch for ONNX Runtime.\n\n"
        f"```sh\npip install softsearch\nsoftsearch verify {name}\n"
        f"softsearch translate {name} < in.txt > out.txt\n```\n\n"
        f"## Training\n\n| what | value |\n|---|---|\n{trained}\nThe whole configuration is in `manifest.json`.\n\n"
        f"{tested}## Files\n\n| file | bytes |\n|---|---|\n{files}"
    )
