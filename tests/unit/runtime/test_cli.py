"""Command line, run as its users run it: exit codes, messages, signals, pipes, and no import of torch."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import softsearch
from softsearch.runtime.translator import Translator
from tests.support.programs import run_python

Start = Callable[..., subprocess.Popen[bytes]]
BLOCKED = ("torch", "lightning", "pytorch_lightning", "torchmetrics", "hydra", "omegaconf", "onnx", "onnxscript")
# Blocks the lab's packages as a host without them would, then runs the command line.
WITHOUT_LAB = f"""
import sys
for name in {BLOCKED!r}:
    sys.modules[name] = None
from softsearch.runtime.cli import main
sys.exit(main())
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", "-c", WITHOUT_LAB, *map(str, arguments)]


def softsearch_run(*arguments: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(*arguments), input=given, capture_output=True, timeout=60, check=False)


def test_translate_needs_no_torch(bundle_dir: Path) -> None:
    done = softsearch_run("translate", bundle_dir, given=b"one two\n\nten\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().split("\n") == [
        *(best.text for best in Translator(bundle_dir).translate(["one two", "", "ten"])),
        "",
    ]


def test_every_option_is_heeded(bundle_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one two\nten\n")
    options = ["--beam", 4, "--n-best", 2, "--alignments", tmp_path / "looks", "--batch-tokens", 8, "--max-length", 3]
    files = ["--input", tmp_path / "in", "--output", tmp_path / "out", "--threads", 2]
    done = softsearch_run("translate", bundle_dir, *options, *files)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"2 of 2 translations were cut off at the length limit" in done.stderr
    translations = Translator(bundle_dir).translate(["one two", "ten"], beam=4, n_best=2, max_length=3)
    expected = [
        f"{index} ||| {found.text} ||| {found.score:.6f}"
        for index, best in enumerate(translations)
        for found in best.n_best
    ]
    assert (tmp_path / "out").read_text().splitlines() == expected
    assert len((tmp_path / "looks").read_text().splitlines()) == 4


def test_verify_says_what_it_checked(bundle_dir: Path) -> None:
    done = softsearch_run("verify", bundle_dir)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"decoder_step.onnx" in done.stdout
    assert b": OK, written by softsearch " + softsearch.__version__.encode() in done.stdout


@pytest.mark.parametrize("subcommand", ["verify", "translate"])
def test_an_altered_bundle_is_one_line_of_error(victim: Path, subcommand: str) -> None:
    content = bytearray((victim / "encoder.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (victim / "encoder.onnx").write_bytes(content)
    done = softsearch_run(subcommand, victim, given=b"one\n")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"softsearch: error: bundle ")
    assert b"encoder.onnx has sha256" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [(b"one\nt\xffn\n", b"standard input:2:2 is not UTF-8"), (b"ten " * 250_000, b"line 1 has 1000000 characters")],
)
def test_input_that_cannot_be_translated_is_one_line_of_error(bundle_dir: Path, given: bytes, message: bytes) -> None:
    done = softsearch_run("translate", bundle_dir, given=given)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"softsearch: error: " + message)
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "arguments are required: COMMAND"),
        (["translate"], "arguments are required: BUNDLE"),
        (["transalte", "x"], "there is no command 'transalte'; did you mean 'translate'?"),
        (["trainn"], "there is no command 'trainn'; did you mean 'train'?"),
        (["resume"], "hydra.run.dir=RUN and resume=auto; softsearch --help lists all"),
        (["zzz"], "there is no command 'zzz'; softsearch --help lists all"),
        (["translate", "x", "--beam", "0"], "'0' is not a whole number of at least 1"),
        (["translate", "x", "--beam", "many"], "'many' is not"),
        (["translate", "x", "--threads", "-1"], "'-1' is not"),
        (["translate", "x", "--max-length", "\u00b2"], "is not a length"),
        (["translate", "x", "--beams", "3"], "there is no option --beams; did you mean --beam?"),
        (["translate", "x", "--zzz=3"], "there is no option --zzz; see --help"),
        (["verify", "x", "--beam", "3"], "there is no option --beam; see --help"),
        (["verify", "x", "y"], "unrecognized arguments: y"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    from softsearch.runtime.cli import main

    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from softsearch.runtime.cli import main

    assert main(["completion"]) == 0
    lab = tmp_path / "lab"  # in place of the lab's command, which answers as Hydra does
    lab.write_text("#!/bin/sh\necho $COMP_LINE $* >&2\necho model=rnn model=gru\n")
    lab.chmod(0o755)
    script = (
        capsys.readouterr().out
        + """
try() {
    COMP_LINE="$*" COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    $function "$1"; echo "${COMPREPLY[*]}"
}
compopt() { :; }  # outside of a completion
function=_softsearch
try softsearch tr; try softsearch translate x --n; try "$1" train model=r
function=_softsearch_python
try "$1" src/train.py model=r; try python other.py model=r; try python src/tr
"""
    )
    done = subprocess.run(["bash", "-c", script, "bash", lab], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "train translate", "--n-best --new-column --no-repeat-ngram", "model=rnn", "model=rnn", "", ""
    ]  # fmt: skip
    assert done.stderr.splitlines() == []


def test_a_folder_of_bundles_is_answered_with_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from softsearch.runtime.cli import main

    for name in ("en-de", "de-en"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").touch()
    assert main(["translate", str(tmp_path)]) == 1
    assert capsys.readouterr().err.endswith(" is a folder of bundles; name one of them: de-en, en-de\n")


def test_version_is_printed_without_loading_anything_heavy() -> None:
    script = f"import sys\nfor name in {(*BLOCKED, 'onnxruntime', 'sentencepiece')!r}: sys.modules[name] = None\n"
    script += "from softsearch.runtime.cli import main\nmain(['--version'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"softsearch {softsearch.__version__}\n")


def test_a_translation_loads_neither_the_lab_nor_what_few_translations_need(bundle_dir: Path) -> None:
    unused = (*BLOCKED, "email", "ssl", "importlib.metadata", "regex", "numpy.ma")
    unused += tuple(f"softsearch.runtime.{name}" for name in ("glossary", "heatmap", "prompt", "shortlist_files"))
    script = f"""
import sys
before = set(sys.modules)
sys.argv = ["softsearch", "translate", {str(bundle_dir)!r}]
from softsearch.__main__ import main
assert main() == 0
print(sorted({{*{unused!r}}} & (sys.modules.keys() - before)))
"""
    done = run_python("-c", script, text="one two\n")
    assert done.stdout.splitlines()[1:] == ["[]"], done.stderr


def test_a_reader_that_leaves_early_is_no_error(bundle_dir: Path, popen: Start) -> None:
    """Fault: the reader of a pipe leaves, as in `softsearch translate ... | head`. Effect: no error."""
    process = popen(
        command("translate", bundle_dir), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, error = process.communicate(b"one two three\n" * 3000, timeout=60)
    assert (process.returncode, error) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line_of_error(bundle_dir: Path) -> None:
    """Fault: a full disk while translating. Effect: an error of one line."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("translate", bundle_dir),
            input=b"one\n",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"softsearch: error: standard output cannot be written (No space left on device)")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["--output", "--alignments"])
def test_a_full_disk_is_named_by_its_file(bundle_dir: Path, option: str) -> None:
    done = softsearch_run("translate", bundle_dir, option, "/dev/full", given=b"one\n")
    assert done.returncode == 1
    assert done.stderr.startswith(b"softsearch: error: /dev/full cannot be written (No space left on device)")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("redirection", "code", "error"),
    [
        ("<&-", 1, b"softsearch: error: standard input is closed"),
        (">&-", 1, b"softsearch: error: standard output is closed"),
        ("2>&-", 0, b""),
    ],
)
def test_a_closed_stream_is_one_line_of_error(bundle_dir: Path, redirection: str, code: int, error: bytes) -> None:
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *command("translate", bundle_dir)]
    done = subprocess.run(shell, input=b"one\n", capture_output=True, timeout=60, check=False)
    assert done.returncode == code
    assert done.stderr.startswith(error)
    assert done.stderr.count(b"\n") == (code != 0)
    assert bool(done.stdout) == (code == 0)


def test_an_error_without_a_place_to_go_is_not_a_translation(tmp_path: Path) -> None:
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command("translate", tmp_path)]
    done = subprocess.run(shell, input=b"one\n", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


def test_help_may_be_cut_off(bundle_dir: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("translate", "--help"), stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_imports_run_ends_without_a_traceback(bundle_dir: Path, number: int, code: int) -> None:
    script = f"""
import os, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime":
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Interrupt())
from softsearch.runtime.cli import main
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "translate", str(bundle_dir)],
        input=b"one\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_sigterm_exits_with_143_and_leaves_no_file(bundle_dir: Path, tmp_path: Path, popen: Start) -> None:
    """Fault: SIGTERM while translating. Effect: exit code 143; no half-written file stays."""
    process = popen(
        command("translate", bundle_dir, "--alignments", tmp_path / "looks"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"one\n" * 1024)
    process.stdin.flush()
    assert process.stdout.readline()  # the first block is done, the command waits for the second
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (143, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")
def test_memory_stays_bounded_on_an_endless_line(bundle_dir: Path, popen: Start) -> None:
    limited = ["prlimit", f"--as={4 << 30}", *command("translate", bundle_dir, "--threads", 1)]
    source = popen(
        [sys.executable, "-c", "while True: print('a' * 65536, end='')"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    done = subprocess.run(limited, stdin=source.stdout, capture_output=True, timeout=60, check=False, env=os.environ)
    assert done.returncode == 1
    assert b"standard input:1 is longer than" in done.stderr
