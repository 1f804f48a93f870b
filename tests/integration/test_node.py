"""examples/node translates as the bundle does, with packages of the lock file."""

import io
import shutil
import subprocess
from pathlib import Path

import pytest
from sentencepiece import SentencePieceTrainer
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.extras.importing.pieces import with_normalizer
from softsearch.text.tokenizer import SentencePieceTokenizer
from tests.support.commands import ROOT, awkward_lines

pytestmark = pytest.mark.day

GOLDEN = ROOT / "tests" / "golden"
EXAMPLE = ROOT / "examples" / "node"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its packages."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js and npm on the PATH")
    folder = tmp_path_factory.mktemp("node") / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    try:
        install = ["npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm's registry did not answer in time")
    if any(code in done.stderr for code in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ECONNRESET")):
        pytest.skip(f"npm's registry cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return folder


def test_it_translates_as_the_bundle_does(example: Path) -> None:
    text, expected = awkward_lines()
    command = ["node", "translate.mjs", str(GOLDEN / "single")]
    done = subprocess.run(command, cwd=example, input=text, capture_output=True, timeout=60, check=False)
    assert done.stdout.decode() == expected, done.stderr


def test_it_normalises_as_a_sentencepiece_model_does(example: Path, tmp_path: Path) -> None:
    rules, folder = io.BytesIO(), tmp_path / "single"
    SentencePieceTrainer.train(
        sentence_iterator=iter(["a"]), model_writer=rules, model_type="char", vocab_size=5, minloglevel=2,
        normalization_rule_name="nmt_nfkc_cf",
    )  # fmt: skip
    charsmap = ModelProto.FromString(rules.getvalue()).normalizer_spec.precompiled_charsmap
    shutil.copytree(GOLDEN / "single", folder)
    ours = SentencePieceTokenizer(with_normalizer((folder / "joint.model").read_bytes(), charsmap))
    (folder / "tokenizer.json").write_bytes(tokenizer_files((ours, ours))["tokenizer.json"])
    text = "one two\nONE\u3000t\uff37o\n"
    command = ["node", "translate.mjs", str(folder)]
    done = subprocess.run(command, cwd=example, input=text.encode(), capture_output=True, timeout=60, check=True)
    first, second = done.stdout.decode().splitlines()
    assert first == second != ""


def test_its_normalisation_is_that_of_the_page() -> None:
    assert (EXAMPLE / "charsmap.mjs").read_bytes() == (ROOT / "src/web/worker/charsmap.js").read_bytes()


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (EXAMPLE / "package-lock.json").read_text(encoding="utf-8")
