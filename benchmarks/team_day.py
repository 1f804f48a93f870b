"""A day of a small team with a large corpus: interruptions and additions, and what each step costs; Linux only.

Text of ``--pairs`` generated pairs in eight files is prepared as an array of four jobs, of which one is killed; its
job and then the array are started again, and the parts are joined and written to a store. A ninth file is added with
the tokenizer of before, and its preparation is killed, too. Then the text is taken away, and a small model is trained
from the store: by two processes, by one and by three, and without a change for comparison. Each step is a command of
its own, after which the table says what it cost: CPU seconds and bytes read of it and of the processes that it waited
for (a killed command is not waited for), parts that were made, and parts that had been made before.
"""

import argparse
import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from corpus_costs import write_pairs

FILES, JOBS = 8, 4
KINDS = ("text", "ids", "tokenizers", "shard")
STEPS = ((2, 3), (1, 5), (3, 9))  # processes, and the steps of optimization that they go on to


class Day:
    """The commands of a day, in a folder."""

    def __init__(self, folder: Path, pairs: int) -> None:
        self.folder, self.cache, self.corpus = folder, folder / "cache", folder / "corpus"
        self.corpus.mkdir()
        for number in range(FILES + 1):
            write_pairs(folder, f"train{number}", pairs // FILES, number)
        for number in range(FILES):
            self.add(number)
        self.val = write_pairs(folder, "val", 1000, 99)
        self.made = dict[Path, int]()
        print("| step | seconds | CPU seconds | MB read | parts made | again |\n" + "| --- " * 6 + "|", flush=True)

    def add(self, number: int) -> None:
        """Add a file to the corpus."""
        for path in self.folder.glob(f"train{number}.*"):
            path.rename(self.corpus / path.name)

    def prepare(self, what: str, *options: str, kill: Callable[[], bool] | None = None) -> None:
        """Run ``softsearch prepare``."""
        sides = ",".join(f"{self.corpus}/*{Path(path).suffix}" for path in self.val)
        files = [f"data.train=[{sides}]", f"data.val=[{','.join(self.val)}]", "data.filters.duplicates=true"]
        self.run(what, "prepare", "data=parallel", *files, f"cache_dir={self.cache}", *options, kill=kill)

    def train(self, what: str, name: str, root: str, *options: str) -> None:
        """Train from prepared data alone, on a host with a cache of its own."""
        fixed = [
            "model=transformer_tiny",
            "trainer=ddp",
            "trainer.accelerator=cpu",
            "batching.canonical=6",
            "test=false",
        ]
        fixed += [
            "batching.tokens=1000",
            "scheduler=constant",
            "scheduler.warmup_steps=1",  # else a share of max_steps, which differs
            "trainer.val_check_interval=1000",
            "trainer.devices=1",
            "trainer.log_every_n_steps=1",
        ]
        place = [f"data.root={root}", f"cache_dir={self.folder / 'node'}", f"hydra.run.dir={self.folder / name}"]
        self.run(what, "train", "data=prepared", *fixed, *place, *options)

    def run(self, what: str, *words: str, kill: Callable[[], bool] | None = None) -> None:
        """Run a command, perhaps kill it, and print what it cost and made."""
        begun, log = time.perf_counter(), self.folder / "log"
        words = (*words, f"hydra.run.dir={self.folder / 'runs'}") if words[0] == "prepare" else words
        with log.open("w") as output:
            command = [sys.executable, "-m", "softsearch", *words]
            own = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
            while os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                if kill is not None and kill():
                    os.killpg(own.pid, signal.SIGKILL)
                time.sleep(0.02)
        counts = dict(line.split(": ") for line in Path(f"/proc/{own.pid}/io").read_text().splitlines())
        _, status, usage = os.wait4(own.pid, 0)
        own.returncode = os.waitstatus_to_exitcode(status)
        if own.returncode != (0 if kill is None else -signal.SIGKILL):
            raise SystemExit(f"{what}: exit status {own.returncode}\n{log.read_text()[-3000:]}")
        made, again = self._changes()
        cpu = usage.ru_utime + usage.ru_stime
        cells = (
            what,
            f"{time.perf_counter() - begun:.0f}",
            f"{cpu:.1f}",
            f"{int(counts['rchar']) / 1e6:,.0f}",
            made,
            again,
        )
        print(f"| {' | '.join(cells)} |", flush=True)

    def _changes(self) -> tuple[str, str]:
        """What was made since the last call, for the first time and again."""
        found = {p.parent: p.stat().st_ino for p in self.folder.glob("*/parts/*/files.json")}
        new = [path.name for path in found if path not in self.made]
        again = [path.name for path, inode in found.items() if self.made.get(path, inode) != inode]
        self.made |= found
        counts = ((kind, sum(name.startswith(f"{kind}-") for name in new)) for kind in KINDS)
        return ", ".join(f"{count} {kind}" for kind, count in counts if count) or "none", ", ".join(again) or "none"

    def is_writing(self, kind: str, after: int) -> Callable[[], bool]:
        """A test whether a part of a kind is being written, once some others have been made."""
        before = len([*self.cache.glob(f"parts/{kind}-*")])

        def is_writing() -> bool:
            begun = self.cache.glob(f"parts/.unfinished-*-{kind}-*/new/*/*")
            return len([*self.cache.glob(f"parts/{kind}-*")]) >= before + after and any(map(_has_bytes, begun))

        return is_writing


def _has_bytes(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def norms(run: Path) -> list[float]:
    """The norm of the gradient of all processes in each step of a run."""
    with (run / "metrics.csv").open(newline="") as file:
        return [float(row["grad_norm/total"]) for row in csv.DictReader(file) if row["grad_norm/total"]]


def main() -> None:
    """Run the day and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where everything goes, some 6 GB for 10 million pairs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        day = Day(Path(folder), options.pairs)
        for job in range(1, JOBS + 1):
            day.prepare(
                f"job {job} of {JOBS}" + ", killed" * (job == 2),
                f"part={job}/{JOBS}",
                kill=day.is_writing("text", 1) if job == 2 else None,
            )
        for job in (2, 1, 3, 4):
            day.prepare(f"job {job} again", f"part={job}/{JOBS}")
        day.prepare("join")
        store = Path(folder, "store")
        day.prepare("write the store", f"store={store}")
        (prepared,) = (path for path in day.cache.glob("prepared/*") if path.is_dir())
        models = f"tokenizer.model=[{prepared}/src.model,{prepared}/tgt.model]"
        day.add(FILES)
        day.prepare("a file more, killed", models, kill=day.is_writing("text", 0))
        day.prepare("a file more, again", models)
        shutil.rmtree(day.corpus)
        shutil.rmtree(day.cache)
        for processes, steps in STEPS:
            day.train(
                f"train to step {steps} in {processes}",
                "cut",
                f"file://{store}",
                f"trainer.devices={processes}",
                f"trainer.max_steps={steps}",
                "resume=auto",
            )
        day.train(
            f"train to step {STEPS[-1][1]} in 1, for comparison",
            "whole",
            f"file://{store}",
            f"trainer.max_steps={STEPS[-1][1]}",
        )
        for name in ("cut", "whole"):
            print(f"norms of gradients, {name}: {' '.join(f'{norm:.5f}' for norm in norms(Path(folder, name)))}")


if __name__ == "__main__":
    main()
