"""The README of a bundle."""

from collections.abc import Mapping
from typing import Any

from softsearch.errors import printable

_ROWS = ("model", "parameters", "data", "languages", "text", "tokenizer", "steps")


def model_card(name: str, facts: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """What the model is, how it was trained, how good it is and how to use it, in Markdown.

    Args:
        name: of the bundle.
        facts: the training facts of its manifest; ``evaluation`` has scores with intervals, ``results`` are the final
            figures of the training, which stand in where there is no evaluation; ``config`` is left to the manifest.
        sizes: bytes of each file.
    """
    trained = {row: facts[row] for row in _ROWS if row in facts} | _training(facts)
    evaluation = facts.get("evaluation")
    results = _evaluated(evaluation) if evaluation else _measured(facts.get("results", {}))
    files = {file: f"{size:,}" for file, size in sizes.items()}
    return (
        f"# {name}\n\nA translation model, exported by softsearch for ONNX Runtime.\n\n"
        f"```sh\npip install softsearch\nsoftsearch verify {name}\n"
        f"softsearch translate {name} < in.txt > out.txt\n```\n\n"
        f"## Training\n\n{_table('what', 'value', trained)}\nThe whole configuration is in `manifest.json`.\n\n"
        f"{results}## Files\n\n{_table('file', 'bytes', files)}"
    )


def _training(facts: Mapping[str, Any]) -> dict[str, str]:
    """What is not true of each run."""
    results, rows = facts.get("results", {}), {}
    if facts.get("averaged", 1) > 1:
        rows["weights"] = f"the mean of {facts['averaged']} checkpoints"
    if "train/seconds" in results:
        speed = results.get("train/tokens_per_second")
        rows["time"] = f"{results['train/seconds'] / 60:,.0f} minutes"
        rows["time"] += "" if speed is None else f", {speed:,.0f} target tokens/s"
    return rows


def _measured(results: Mapping[str, float]) -> str:
    scores = {k: f"{value:.3f}" for k, value in results.items() if not k.startswith(("train/", "model/"))}
    return f"## Results\n\n{_table('figure', 'value', scores)}\n" if scores else ""


def _evaluated(evaluation: Mapping[str, Any]) -> str:
    rows = "".join(
        f"| {key} | {score['value']:.3f} | {score['low']:.3f} to {score['high']:.3f} | {_code(score['signature'])} |\n"
        for key, score in evaluation["scores"].items()
    )
    overlap = ", ".join(f"{kind}: {count:,}" for kind, count in evaluation["overlap"].items())
    return (
        f"## Results\n\n{evaluation['sentences']:,} sentences of {_line(evaluation['test_set'])}, "
        f"{_line(evaluation['search'])}, with 95 % bootstrap intervals.\n\n"
        f"| score | value | interval | signature |\n|---|---|---|---|\n{rows}\n"
        + (f"Test sentences that are in the training data too: {overlap}.\n\n" if overlap else "")
    )


def _table(first: str, second: str, rows: Mapping[str, Any]) -> str:
    return f"| {first} | {second} |\n|---|---|\n" + "".join(
        f"| {_cell(key)} | {_cell(value)} |\n" for key, value in rows.items()
    )


def _code(signature: str) -> str:
    return f"`{_cell(signature)}`" if signature else ""


def _cell(value: object) -> str:
    """In a cell of a table, where a bar would end it."""
    return _line(str(value)).replace("|", "\\|")


def _line(text: str) -> str:
    return printable(" ".join(text.split()))
