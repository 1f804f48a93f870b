"""Prepares a corpus on all machines of a Ray cluster that see one folder, with the options of ``softsearch prepare``.

    pip install 'softsearch[lab,ray]'
    python examples/ray_prepare.py data.train='[corpus/*.en,corpus/*.de]' data.val='[b.en,b.de]' cache_dir=FOLDER

Each CPU makes a share of the parts: it reads its own files and writes its own folders in ``cache_dir``, first of
cleaned text, then of token ids. Then this machine joins them, for which it reads the parts' headers and hashes alone.
A lost machine costs the parts that it was making; typed again, this makes what is missing.
"""

import sys

import ray
from ray.exceptions import RayTaskError

from softsearch import SoftsearchError, lab


@ray.remote
def make_share(number: int, hosts: int, words: list[str]) -> None:
    """Makes every N-th part that is missing, in one process."""
    lab.prepare(*words, part=f"{number}/{hosts}", processes=1)


def main(words: list[str]) -> None:
    """Makes all parts, and joins them."""
    cpus = int(ray.cluster_resources()["CPU"])
    for _ in ("text", "token ids"):  # a tokenizer needs all text
        try:
            ray.get([make_share.remote(number, cpus, words) for number in range(1, cpus + 1)])
        except RayTaskError as error:
            raise error.cause from None  # a line that cannot be read, say
    lab.prepare(*words)


if __name__ == "__main__":
    ray.init(ignore_reinit_error=True)
    try:
        main(sys.argv[1:])
    except SoftsearchError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
