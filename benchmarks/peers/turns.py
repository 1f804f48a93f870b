"""Protocol of decode_recurrent.py with its processes: a line asks for a measurement, a line of JSON answers."""

import json
import sys
import time
from collections.abc import Callable, Sequence

VOCAB, SRC_TOKENS, STEPS = 10_000, 16, 24  # EOS included in the source; no hypothesis ends before the last step
EMBEDDING, HIDDEN = 256, 512
NO_EOS = -100.0  # bias of EOS in the output layer

Decode = Callable[
    [Sequence[list[int]], int], int
]  # sentences of ids from 0 to VOCAB - 5 without EOS, beam: tokens written


def serve(decode: Decode) -> None:
    """Answer lines ``SENTENCES BATCH BEAM`` until the input ends."""
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        sentences, batch, beam = map(int, line.split())
        src = [[(7 * i + 13 * j) % (VOCAB - 4) for j in range(SRC_TOKENS - 1)] for i in range(sentences)]
        start, cpu_start = time.perf_counter(), time.process_time()
        tokens = sum(decode(src[first : first + batch], beam) for first in range(0, sentences, batch))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        print(json.dumps({"seconds": seconds, "cpu": cpu, "tokens": tokens}), flush=True)
