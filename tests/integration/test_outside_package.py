"""A package outside the tree, with a decoder and a data source, through every command that opens its checkpoint."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.commands import SERVER, SMALL

pytestmark = pytest.mark.day

MODULE = """
import os
from pathlib import Path

from softsearch.data.corpora.spellout import Spellout
from softsearch.models.attentional import AttentionalDecoder

Path(os.environ["IMPORTED"]).touch()


class MyDecoder(AttentionalDecoder):
    pass


class MySource(Spellout):
    @property
    def text_form(self):
        return "lc_tok"
"""
TRUST = "trust=[outside_test.*]"


@dataclass(frozen=True)
class Home:
    """A folder with the package and a run."""

    folder: Path

    @property
    def ckpt(self) -> Path:
        return self.folder / "run" / "checkpoints" / "best.ckpt"

    @property
    def imported(self) -> Path:
        """Exists once the package has been imported."""
        return self.folder / "imported"

    def run(self, command: str, *options: str, **environment: str) -> CompletedProcess[str]:
        """Runs a command; the package is where Python finds it."""
        self.imported.unlink(missing_ok=True)
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        script = self.folder / f"{command}.py"  # whose folder is the first that Python looks into
        script.write_text(f"from softsearch.app.start import start\nstart({command!r})\n")
        cache = () if command in ("average", "compare") else (f"cache_dir={self.folder}/cache",)
        env = {"IMPORTED": str(self.imported), **environment}
        return SERVER.run([str(script), *options, *cache], cwd=self.folder, env=env)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("outside"))
    (home.folder / "outside_test.py").write_text(MODULE)
    own = ("model.decoder._target_=outside_test.MyDecoder", "data._target_=outside_test.MySource")
    done = home.run("train", *SMALL, *own, f"hydra.run.dir={home.folder}/run")
    assert done.returncode == 0, done.stderr
    for side in ("en", "de"):
        lines = next((home.folder / "cache").glob(f"spellout-*/val.{side}")).read_text().splitlines()[:4]
        (home.folder / f"x.{side}").write_text("".join(f"{line}\n" for line in lines))
    return home


def commands(home: Home) -> dict[str, tuple[str, ...]]:
    """The options of the commands that build the model."""
    out, text = f"hydra.run.dir={home.folder}/out", (f"src={home.folder}/x.en", f"tgt={home.folder}/x.de")
    short = ("search=greedy", "search.max_length_factor=1")
    return {
        "evaluate": (f"ckpt={home.ckpt}", *short, out),
        "score": (f"ckpt={home.ckpt}", *text, out),
        "export": (f"ckpt={home.ckpt}", f"out={home.folder}/out", *short),
        "tune": (f"ckpt={home.ckpt}", f"test=[{home.folder}/x.en,{home.folder}/x.de]", "searches=1", *short[1:], out),
    }


@pytest.mark.parametrize("command", ["evaluate", "score", "export", "tune"])
def test_a_command_refuses_the_package_until_it_is_trusted(command: str, home: Home) -> None:
    options = commands(home)[command]
    refused = home.run(command, *options)
    assert refused.returncode != 0
    (line,) = refused.stderr.splitlines()
    assert "model.decoder._target_ of its config is 'outside_test.MyDecoder'" in line
    assert line.endswith("type trust='[outside_test.*]'")
    assert not home.imported.exists()
    by_variable = command == "score"
    consent = {"SOFTSEARCH_TRUST": "outside_test.*"} if by_variable else {}
    trusted = home.run(command, *options, *(() if by_variable else (TRUST,)), **consent)
    assert trusted.returncode == 0, trusted.stderr
    if command == "evaluate":
        report = json.loads((home.folder / "out" / "report.json").read_text())
        assert report["systems"][0]["scores"]["bleu"]["signature"].count("tok:none") == 1  # text_form of MySource


def test_files_of_ones_own_need_the_model_s_class_alone(home: Home) -> None:
    text = f"test=[{home.folder}/x.en,{home.folder}/x.de]"
    only = "trust=[outside_test.MyDecoder]"
    done = home.run("evaluate", *commands(home)["evaluate"], text, only)
    assert done.returncode == 0, done.stderr
    report = json.loads((home.folder / "out" / "report.json").read_text())
    assert (report["src_lang"], report["tgt_lang"]) == ("en", "de")
    assert "tok:none" in report["systems"][0]["scores"]["bleu"]["signature"]
    done = home.run("evaluate", *commands(home)["evaluate"], only)  # whose test set only MySource knows
    assert done.returncode != 0
    assert "data._target_ of its config is 'outside_test.MySource'" in done.stderr
    assert "type trust='[outside_test.*]'" in done.stderr


def test_an_average_and_initial_weights_import_nothing_that_a_file_names(home: Home) -> None:
    small = [option for option in SMALL if not option.startswith("tokenizer.")]  # it is that of the checkpoint
    assert home.run("average", f"run={home.folder}/run", "last=2").returncode == 0
    assert not home.imported.exists()
    done = home.run("train", *small, f"init={home.ckpt}", f"hydra.run.dir={home.folder}/out")
    assert done.returncode != 0
    assert "model.decoder is 'outside_test.MyDecoder' there" in done.stderr
    assert not home.imported.exists()
    own = ("model.decoder._target_=outside_test.MyDecoder", "trainer.max_steps=1")
    done = home.run("train", *small, *own, f"init={home.ckpt}", f"hydra.run.dir={home.folder}/out")
    assert done.returncode == 0, done.stderr
