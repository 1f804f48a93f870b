"""Limits on lengths: one file of cases, for the search in NumPy, in ONNX graphs, in the page and in the server."""

import hashlib
import json
import shutil
import subprocess
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest

from softsearch.errors import ConfigError
from softsearch.export.recurrences import OPSET
from softsearch.export.search_loop import with_block
from softsearch.export.single_graph import beam_search, single_graph
from softsearch.extras.serve.web.site import write_site
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.line_encoder import open_tokenizers
from softsearch.runtime.options import search_facts
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis, StepFunction
from softsearch.text.vocabulary import EOS, with_eos
from tests.support.browser import serve
from tests.support.bundles import edit_manifest
from tests.support.commands import ROOT
from tests.support.serving import serving

GOLDEN, WEB = ROOT / "tests" / "golden", ROOT / "src" / "web"
# What a worker of the page does, without the worker.
SCRIPT = f"""
import {{ readFileSync }} from 'node:fs';
const web = {json.dumps(WEB.as_uri())};
const {{ address, requests }} = JSON.parse(readFileSync(0, 'utf8'));
Object.assign(globalThis, {{ self: globalThis, location: new URL(address) }});
const ort = await import(`${{web}}/node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs`);
const {{ Model }} = await import(`${{web}}/worker/model.js`);
const {{ translate }} = await import(`${{web}}/worker/search.js`);
ort.env.wasm.wasmPaths = `${{web}}/node_modules/onnxruntime-web/dist/`;
const site = await (await fetch(new URL('site.json', address))).json();
const answers = [];
for (const {{ text, model, beam }} of requests) {{
  const {{ most_tokens }} = site.models.find(({{ name }}) => name === model);
  let last;
  for await (last of translate(await Model.open(model, most_tokens, () => {{}}), text, beam));
  answers.push(last.n_best[0]);
}}
process.stdout.write(JSON.stringify(answers));
"""


class Case(NamedTuple):
    """A sentence and options of beam search, the limits, and the translation by the golden bundle, EOS counted."""

    text: str
    source: int
    options: dict[str, Any]
    least: int
    most: int
    tokens: int
    truncated: bool
    translation: str

    @property
    def search(self) -> BeamSearch:
        return BeamSearch(**self.options)

    def check(self, text: str, tokens: int, *, truncated: bool) -> None:
        assert (text, tokens, truncated) == (self.translation, self.tokens, self.truncated)

    def check_hypothesis(self, found: Hypothesis) -> None:
        self.check(tokenizers()[1].decode(found.tokens), found.length, truncated=found.truncated)


CASES = [Case(**case) for case in json.loads((ROOT / "tests" / "lengths.json").read_text(encoding="utf-8"))]


def supported(case: Case) -> bool:
    """Whether a single graph has the search."""
    try:
        beam_search(case.search)
    except ConfigError:
        return False
    return True


SINGLE = [case for case in CASES if supported(case)]


@cache
def bundle() -> Bundle:
    """The golden bundle in the opset of the exporter."""
    found = Bundle.open(GOLDEN / "bundle")
    models = {name: onnx.load_model_from_string(found.files[name]) for name in ("encoder.onnx", "decoder_step.onnx")}
    for model in models.values():
        model.opset_import[0].version = OPSET
    return replace(found, files=found.files | {name: model.SerializeToString() for name, model in models.items()})


@cache
def tokenizers() -> Any:
    return open_tokenizers(bundle())


@cache
def step_fn(*, block: bool) -> StepFunction:
    return OnnxStepFunction(with_block(bundle(), 1e-4) if block else bundle())


def graph(case: Case) -> bytes:
    manifest = bundle().manifest
    return single_graph(bundle().files, case.search, manifest.tgt_vocab_size, manifest.max_src_tokens)


def source(case: Case) -> list[int]:
    return [*tokenizers()[0].encode(case.text)]


def test_the_cases_meet_their_limits() -> None:
    assert {case.truncated for case in CASES} == {case.truncated for case in SINGLE} == {True, False}
    assert len(CASES) - len(SINGLE) > 4
    for case in CASES:
        assert (len(source(case)), *case.search.lengths(case.source)) == (case.source, case.least, case.most)
        assert case.tokens <= case.most
        assert case.tokens >= case.least or case.truncated
        assert case.truncated is False or case.tokens == case.most


@pytest.mark.parametrize("block", [False, True], ids=["numpy", "blocks of ONNX"])
@pytest.mark.parametrize("case", CASES)
def test_searches_of_python(case: Case, block: bool) -> None:
    ((found,),) = case.search(step_fn(block=block), [source(case)])
    case.check_hypothesis(found)


@pytest.mark.parametrize("case", SINGLE)
def test_the_single_graph_knows_the_limit(case: Case) -> None:
    given = {"src_tokens": [with_eos(source(case))], "beam": case.search.beam, "n_best": 1, "max_length": [0]}
    inputs = {name: np.array(value) for name, value in given.items()}
    inputs["length_penalty"] = np.array(case.search.length_penalty, dtype=np.float32)
    names = ("tokens", "lengths")
    tokens, lengths = onnxruntime.InferenceSession(graph(case)).run(names, inputs)
    (length,) = lengths[0].tolist()
    written = tokens[0, 0, :length].tolist()
    ended = written[-1] == EOS
    case.check(tokenizers()[1].decode(written[: length - ended]), length, truncated=not ended)


def test_the_page_is_given_the_limits(tmp_path: Path) -> None:
    """The same for models of this version and for the golden one, whose graph has the formula."""
    if not shutil.which("node") or not (WEB / "node_modules").is_dir():
        pytest.skip("the page's packages are not installed; install Node.js 20 and run `make web`")
    paths = []
    for number, case in enumerate(SINGLE):
        paths.append(folder := tmp_path / f"case{number}")
        shutil.copytree(GOLDEN / "single", folder)
        (folder / "model.onnx").write_bytes(model := graph(case))
        entry = {"sha256": hashlib.sha256(model).hexdigest(), "bytes": len(model)}
        edit_manifest(folder, partial(_set, search=search_facts(case.search), model=entry))
    write_site([*paths, GOLDEN / "single"], tmp_path / "site")
    asked = [(path.name, case) for path, case in zip(paths, SINGLE, strict=True)]
    asked += [("single", case) for case in SINGLE if not case.options]
    requests = [{"text": case.text, "model": name, "beam": case.search.beam} for name, case in asked]
    with serve(tmp_path / "site") as address:
        given = json.dumps({"address": address, "requests": requests})
        command = ["node", "--input-type=module", "--eval", SCRIPT]
        done = subprocess.run(command, input=given, capture_output=True, encoding="utf-8", timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    for (_, case), found in zip(asked, json.loads(done.stdout), strict=True):
        case.check(found["text"], len(found["tgt_pieces"]), truncated=found["truncated"])


def _set(tree: dict[str, Any], *, search: dict[str, Any], model: dict[str, Any]) -> None:
    tree["search"] = search
    tree["files"]["model.onnx"] = model


def test_the_stream_ends_with_the_translation_within_the_limits() -> None:
    """Of the cases whose limits a request can set: numbers of tokens."""
    numbers = [case for case in CASES if request_of(case) is not None]
    assert {case.least > 0 for case in numbers} == {case.truncated for case in numbers} == {True, False}
    with serving(GOLDEN / "bundle") as server, httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        for case in numbers:
            lines = client.post("/translate/stream", json=request_of(case)).text.splitlines()
            last = json.loads(lines[lines.index("event: done") + 1].removeprefix("data: "))["n_best"][0]
            case.check(last["text"], len(last["tgt_pieces"]), truncated=last["truncated"])


def request_of(case: Case) -> dict[str, Any] | None:
    """A request to the server; None if a limit depends on the source."""
    options = dict(case.options)
    for name in ("max", "min"):
        if options.get(f"{name}_length_factor") == 0:
            del options[f"{name}_length_factor"]
            options[f"{name}_length"] = options.pop(f"{name}_length_offset")
    return None if any("_length_" in name for name in options) else {"text": case.text, **options}
