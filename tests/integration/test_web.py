"""A site in a real browser: its models translate as the runtime does, also without a network, and ask nobody else."""

import json
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver import Chrome

from softsearch.extras.serve.web.site import write_site
from softsearch.runtime.translator import Translator
from tests.support.browser import complaints, serve, start
from tests.support.bundles import edit_manifest
from tests.support.commands import ROOT

GOLDEN = ROOT / "tests" / "golden"
TOLERANCE = 1e-4
BEAM = 5
# Translates by the module that the page has; `window.tested` stays for the next call.
TRANSLATE = """
const [requests, done] = arguments;
(async () => {
  const { open } = await import(new URL('local.js', document.baseURI));
  const site = await (await fetch('site.json')).json();
  window.progress ??= [];
  window.tested ??= await open(site, (step) => window.progress.push(step));
  const answers = [];
  for (const request of requests) {
    const results = [];
    for await (const result of window.tested.translate(request)) results.push(result);
    answers.push(results);
  }
  return answers;
})().then(done, (error) => done(error.message));
"""
# Before the script of a worker: another number of cores, and the names of the threads that are started.
FOUR_CORES = """
Object.defineProperty(navigator, 'hardwareConcurrency', { value: 4 });
const threads = [];
self.Worker = class extends Worker {
  constructor(url, options) {
    super(url, options);
    threads.push(options.name);
    new BroadcastChannel('threads').postMessage(threads);
  }
};
"""
READY = "navigator.serviceWorker.ready.then(() => arguments[0](true))"


@pytest.fixture
def site(page: Path, tmp_path: Path) -> Path:
    del page
    shutil.copytree(GOLDEN / "single", tmp_path / "lower")
    edit_manifest(tmp_path / "lower", lambda tree: tree["training"]["config"]["data"].update(text_form="lc_tok"))
    write_site([*[GOLDEN / "single"] * 2, tmp_path / "lower"], tmp_path / "pages" / "site")
    return tmp_path / "pages" / "site"


@pytest.fixture
def host(site: Path) -> Iterator[ExitStack]:
    """Closed, it stops the server of the site."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def shown(browser: Chrome, site: Path, host: ExitStack) -> Chrome:
    address = host.enter_context(serve(site.parents[1])) + "pages/site/"
    complaints(browser, "")  # of the test before
    browser.set_script_timeout(60)
    browser.get(address)
    return browser


def translate(browser: Chrome, *texts: str, beam: int = BEAM, n_best: int = BEAM, model: str = "single") -> Any:
    """All results of each text, or the message of an error."""
    requests = [{"model": model, "text": text, "beam": beam, "nBest": n_best} for text in texts]
    return browser.execute_async_script(TRANSLATE, requests)


def sentences() -> list[str]:
    """50 sentences of the golden model's words."""
    lines = (GOLDEN / "sources.txt").read_text(encoding="utf-8").splitlines()
    rng = random.Random(0)
    words = sorted({word for line in lines for word in line.split()})
    return lines + [" ".join(rng.choices(words, k=rng.randrange(1, 12))) for _ in range(50 - len(lines))]


def test_it_translates_as_the_runtime_does(shown: Chrome) -> None:
    lines = sentences()
    expected = Translator(GOLDEN / "bundle", threads=1).translate(lines, beam=BEAM, n_best=BEAM, alignments=True)
    answers = translate(shown, *lines)
    assert len(expected) == len(answers) == 50
    assert sum(len(results) > 1 for results in answers) > 30, "there are no partial results to look at"
    for ours, results in zip(expected, answers, strict=True):
        assert [result["final"] for result in results] == [False] * (len(results) - 1) + [True]
        found = results[-1]["n_best"]
        assert [other["text"] for other in found] == [other.text for other in ours.n_best]
        for other, theirs in zip(ours.n_best, found, strict=True):
            assert theirs["score"] == pytest.approx(other.score, abs=TOLERANCE)
            assert theirs["log_prob"] == pytest.approx(other.log_prob, abs=TOLERANCE)
            assert (theirs["src_pieces"], theirs["tgt_pieces"]) == (list(other.src_pieces), list(other.tgt_pieces))
            assert theirs["truncated"] == other.truncated
            assert theirs["fewer_sentences"] == other.fewer_sentences
            np.testing.assert_allclose(theirs["alignments"], other.alignments, atol=TOLERANCE)
    assert complaints(shown, shown.current_url) == []


@pytest.mark.day
def test_plain_text_is_tokenised_for_a_model_of_tokenised_text(shown: Chrome) -> None:
    (plain,), (tokenised,) = (
        translate(shown, text, model=name) for text, name in (("One, TWO.", "lower"), ("one , two .", "single"))
    )
    assert plain[-1]["n_best"][0]["src_pieces"] == tokenised[-1]["n_best"][0]["src_pieces"]
    assert plain[-1]["n_best"][0]["log_prob"] == tokenised[-1]["n_best"][0]["log_prob"]


def test_partial_results_grow_and_fewer_are_returned_than_searched(shown: Chrome) -> None:
    (results,) = translate(shown, sentences()[0], beam=3, n_best=1)
    lengths = [len(result["n_best"][0]["tgt_pieces"]) for result in results]
    assert lengths[:2] == [4, 8]
    assert [len(result["n_best"]) for result in results] == [1] * len(results)
    assert results[0]["n_best"][0]["truncated"]


def test_it_works_offline_and_with_threads_once_it_was_loaded(shown: Chrome, host: ExitStack) -> None:
    first = translate(shown, "forty-five dollars")
    assert not shown.execute_script("return crossOriginIsolated")
    assert shown.execute_async_script(READY)
    host.close()
    shown.refresh()
    assert shown.execute_script("return crossOriginIsolated")
    policy = "fetch('worker.js').then((it) => arguments[0](it.headers.get('Content-Security-Policy')))"
    assert shown.execute_async_script(policy).startswith("default-src 'none'")  # a worker does not have the page's
    assert translate(shown, "forty-five dollars")[0][-1]["n_best"][0]["text"] == first[0][-1]["n_best"][0]["text"]
    assert complaints(shown, shown.current_url) == []


@pytest.mark.day
def test_a_host_of_four_cores_gets_two_threads(shown: Chrome, site: Path) -> None:
    """Under the headers that the service worker adds: they could forbid the threads' scripts."""
    worker = site / "worker.js"
    worker.write_text(FOUR_CORES + worker.read_text(encoding="utf-8"), encoding="utf-8")
    assert len(translate(shown, "one")) == 1
    assert shown.execute_async_script(READY)
    shown.refresh()
    shown.execute_script("new BroadcastChannel('threads').onmessage = ({ data }) => (window.threads = data)")
    assert len(translate(shown, "one")) == 1
    assert shown.execute_script("return window.threads") == ["em-pthread"]
    assert complaints(shown, shown.current_url) == []


@pytest.mark.day
def test_two_models_translate_at_the_same_time(shown: Chrome) -> None:
    text = sentences()[0]
    translate(shown, text)
    script = """
    const [requests, done] = arguments;
    const last = async (request) => {
      let found;
      for await (found of window.tested.translate(request));
      return found;
    };
    Promise.all(requests.map(last)).then(done, (error) => done(error.message));
    """
    requests = [{"model": name, "text": text, "beam": BEAM, "nBest": 1} for name in ("single", "single-2")]
    answers = shown.execute_async_script(script, requests)
    assert isinstance(answers, list), answers
    one, other = answers
    assert one["n_best"] == other["n_best"] == translate(shown, text, n_best=1)[0][-1]["n_best"]


@pytest.mark.day
def test_a_newer_version_takes_the_place_of_the_older_one(shown: Chrome, site: Path, tmp_path: Path) -> None:
    translate(shown, "four")
    assert shown.execute_async_script(READY)
    (tmp_path / "examples").write_text("four\n")
    write_site([GOLDEN / "single"], site, tmp_path / "examples")
    for path in site.rglob("*"):  # what is as old as before, to the second, is not sent again
        os.utime(path, (path.stat().st_mtime + 10,) * 2)
    shown.execute_async_script(
        "navigator.serviceWorker.ready.then(async (it) => { await it.update(); const worker = it.installing; "
        "if (worker) await new Promise((end) => (worker.onstatechange = end)); arguments[0](); })"
    )
    assert shown.execute_async_script("fetch('site.json').then((it) => it.json()).then(arguments[0])")["examples"] == []
    shown.refresh()
    found = shown.execute_async_script("fetch('site.json').then((it) => it.json()).then(arguments[0])")
    assert found["examples"] == [{"text": "four", "note": ""}]
    names = shown.execute_async_script("caches.keys().then(arguments[0])")
    assert sum(found["version"] in name for name in names) == 1
    assert len([name for name in names if "/pages/site/" in name]) == 2  # and that of the models


@pytest.mark.day
def test_nobody_else_is_asked(site: Path, tmp_path: Path) -> None:
    """By the browser's own log of the network: that of the page lacks the requests of workers."""
    log = tmp_path / "net.json"
    with start(tmp_path / "profile", f"--log-net-log={log}") as browser, serve(site) as address:
        browser.set_script_timeout(60)
        for _ in range(2):  # before and with the service worker
            browser.get(address)
            assert len(translate(browser, "one")) == 1
            assert browser.execute_async_script(READY)
    events = [event.get("params", {}) for event in json.loads(log.read_bytes())["events"]]
    requests = [event for event in events if "url" in event]
    urls = {request["url"] for request in requests if request.get("initiator") == address.rstrip("/")}
    assert {f"{address}{file}" for file in ("worker.js", "models/single/model.onnx", "site.json")} <= urls
    assert not [url for url in urls if not url.startswith(address)]


@pytest.mark.day
def test_plain_http_does_without_what_browsers_keep_for_https(site: Path, tmp_path: Path) -> None:
    """There is no cache, no hash and no service worker."""
    with (
        start(tmp_path / "profile", "--host-resolver-rules=MAP host.test 127.0.0.1") as browser,
        serve(site) as address,
    ):
        browser.set_script_timeout(60)
        browser.get(address.replace("127.0.0.1", "host.test"))
        assert not browser.execute_script("return isSecureContext")
        shown = browser.execute_script("return document.getElementById('privacy').textContent")
        assert shown.endswith("so only the sizes of the models are checked.")
        assert len(translate(browser, "one")) == 1
        assert complaints(browser, browser.current_url) == []


@pytest.mark.day
def test_a_browser_that_is_too_old_is_told_so(shown: Chrome) -> None:
    shown.execute_script("WebAssembly.validate = () => false")
    assert translate(shown, "one") == (
        "This browser has no WebAssembly SIMD, which the models need; use a newer browser."
    )


@pytest.mark.day
def test_a_search_without_memory_says_so_and_the_next_one_is_served(site: Path, tmp_path: Path) -> None:
    pages = "--js-flags=--wasm-max-mem-pages=600"  # of 64 KiB
    with start(tmp_path / "profile", pages) as browser, serve(site) as address:
        browser.set_script_timeout(60)
        browser.get(address)
        assert translate(browser, "forty-five dollars " * 30, beam=140) == (
            "The browser does not have enough memory for single; close other tabs, or use a smaller beam or model."
        )
        assert len(translate(browser, "one")) == 1


@pytest.mark.day
def test_nothing_else_can_be_asked(shown: Chrome) -> None:
    shown.execute_async_script("fetch('https://example.com').catch(() => null).then(arguments[0])")
    assert "Content Security Policy" in "\n".join(complaints(shown, shown.current_url))


@pytest.mark.day
@pytest.mark.parametrize("text", ["", " \t\n", "\u200b\u2028"])
def test_blank_text_is_translated_without_the_model(shown: Chrome, text: str) -> None:
    ((result,),) = translate(shown, text)
    assert (result["final"], result["n_best"][0]["text"], result["n_best"][0]["src_pieces"]) == (True, "", [])


@pytest.mark.day
def test_a_text_that_the_model_cannot_take_is_refused_in_words(shown: Chrome) -> None:
    assert translate(shown, "one " * 600) == (
        "The text has 1201 tokens, but the model reads at most 512 at once; translate fewer sentences at a time."
    )
    assert translate(shown, "a", model="none") == "There is no model none on this site."
    half = TRANSLATE.replace("const [requests, done] = arguments;", "const [requests, done] = arguments; "
                             "requests[0].text = 'a\\ud800';")  # fmt: skip
    request = {"model": "single", "beam": 1, "nBest": 1}
    assert "lone surrogate" in shown.execute_async_script(half, [request])
    assert len(translate(shown, "one")) == 1


@pytest.mark.day
@pytest.mark.parametrize("damage", ["altered", "cut", "missing", "longer"])
def test_a_damaged_model_is_refused_and_one_that_was_repaired_is_used(browser: Chrome, site: Path, damage: str) -> None:
    path = "models/single/tokenizer.json"
    content = (site / path).read_bytes()
    broken = {"altered": content.replace(b"100", b"101", 1), "cut": content[:-9], "longer": content + b" "}
    (site / path).unlink()
    if damage != "missing":
        (site / path).write_bytes(broken[damage])
    with serve(site) as address:
        browser.set_script_timeout(60)
        browser.get(address)
        message = translate(browser, "one")
        problem = "cannot be fetched: the server answers 404." if damage == "missing" else "is not the file"
        assert isinstance(message, str)
        assert message.startswith(f"{path} {problem}")
        (site / path).write_bytes(content)
        assert len(translate(browser, "one")) == 1


@pytest.mark.day
def test_a_request_ends_when_it_is_aborted_and_the_next_one_is_served(shown: Chrome) -> None:
    translate(shown, "one")
    script = """
    const [text, done] = arguments;
    (async () => {
      const ask = async (signal, most) => {
        const results = [];
        for await (const result of window.tested.translate({ model: 'single', text, beam: 5, nBest: 1, signal })) {
          results.push(result.final);
          if (results.length === most) break;
        }
        return results;
      };
      const late = new AbortController();
      const early = AbortSignal.abort();
      const old = ask(late.signal);
      late.abort();
      return [await ask(early), await old, await ask(undefined, 1), (await ask()).at(-1)];
    })().then(done, (error) => done(error.message));
    """
    assert shown.execute_async_script(script, sentences()[0]) == [[], [], [False], True]


@pytest.mark.day
def test_the_download_is_reported(shown: Chrome, site: Path) -> None:
    translate(shown, "one")
    steps = shown.execute_script("return window.progress")
    files = [site / "models" / "single" / name for name in ("model.onnx", "tokenizer.json")]
    total = sum(file.stat().st_size for file in files)
    assert steps[-1] == {"model": "single", "loaded": total, "total": total}
    assert [step["loaded"] for step in steps] == sorted(step["loaded"] for step in steps)
