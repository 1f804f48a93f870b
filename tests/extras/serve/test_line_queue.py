"""Queue: every line comes out once, requests take turns, with lines of one group and of similar length."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.extras.serve.line_queue import Line, LineQueue, Request
from softsearch.extras.serve.models import Group, Model


class Counted(Model):
    """A line is the number of its tokens."""

    def __init__(self) -> None:
        pass

    def encode(self, group: Group, text: str, other: str | None, number: int) -> tuple[str, None, int]:
        return text, None, int(text)


GROUPS = [Group(Counted(), None, budget, pairs=False) for budget in (40, 12)]  # a wide and a narrow one


def request(group: Group, tokens: Sequence[int]) -> list[Line]:
    loop = asyncio.new_event_loop()
    try:
        return Request(group, list(map(str, tokens)), None, loop.create_future(), 0.0).lines
    finally:
        loop.close()


def tokens_of(lines: Sequence[Line]) -> list[int]:
    return [line.tokens for line in lines]


def padded(lines: Sequence[Line]) -> int:
    return len(lines) * max(tokens_of(lines))


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(GROUPS), st.lists(st.integers(1, 20), min_size=1, max_size=8)),
            st.integers(1, 3),  # take a batch with so many idle workers
            st.none(),  # a client leaves
        ),
        max_size=40,
    )
)
def test_every_line_leaves_once_and_the_one_whose_turn_it_is_is_next(
    steps: list[tuple[Group, list[int]] | int | None],
) -> None:
    queue, waiting = LineQueue(), []  # the model: lines in the order of their arrival
    for step in [*steps, *[1] * 200]:
        if isinstance(step, tuple):
            lines = request(*step)
            queue.push(lines)
            waiting += lines
        elif step is None:
            own = [line for line in waiting if line.request is waiting[-1].request]
            queue.remove(own)
            waiting = [line for line in waiting if line not in own]
        elif waiting:
            batch, full = queue.plan(step)
            first = min(waiting, key=lambda line: (line.turn, line.number))
            assert first in batch
            assert len({id(line) for line in batch}) == len(batch)
            assert all(line in waiting and line.group is first.group for line in batch)
            assert len(batch) == 1 or padded(batch) <= batch[0].group.batch_tokens
            mates = [line for line in waiting if line.group is batch[0].group]
            assert len(batch) <= -(-len(mates) // step)
            # No line that stays is between two of the batch.
            left = [line.tokens for line in mates if line not in batch]
            assert not [count for count in left if min(tokens_of(batch)) < count < max(tokens_of(batch))]
            if not full:
                assert len(batch) == -(-len(mates) // step)
            queue.begin(batch)
            waiting = [line for line in waiting if line not in batch]
        assert len(queue) == len(waiting)
        assert all(line in queue for line in waiting)
    assert not waiting


def test_requests_take_turns_by_what_they_cost() -> None:
    """Fault: one request has much work. Effect: others share the worker with it, and it with them."""
    slow, queue, order = Group(Counted(), None, 1, pairs=False, prepare=len), LineQueue(), [0]
    queue.push(request(slow, [10] * 24))
    for _ in range(60):
        (line,) = queue.plan(1).lines
        queue.begin([line])
        order.append(line.tokens)
        if line.tokens == 2 or len(order) == 2:  # a client with little work at a time sends the next
            queue.push(request(slow, [2]))
    turns = [step for step, tokens in enumerate(order) if tokens == 10]
    assert turns[:2] == [1, 10]
    assert {after - before for before, after in pairwise(turns[1:])} == {6}  # each has half of the time


def test_lines_of_similar_length_share_a_batch() -> None:
    queue = LineQueue()
    queue.push(request(GROUPS[0], [10, 2, 11, 2, 9, 10, 20, 3]))
    batch, full = queue.plan(1)
    assert full
    assert tokens_of(batch) == [3, 9, 10, 10]  # 11 would make room for three only
    queue.remove(batch)
    assert tokens_of(queue.plan(1).lines) == [2, 2, 11]  # the oldest first


def test_a_batch_is_as_full_as_the_budget_allows() -> None:
    queue = LineQueue()
    queue.push(request(GROUPS[0], [4] * 25))
    for size, is_full in ((10, True), (10, True), (5, False)):
        batch, full = queue.plan(1)
        assert (len(batch), full) == (size, is_full)
        queue.remove(batch)


def test_idle_workers_share_the_lines() -> None:
    queue = LineQueue()
    queue.push(request(GROUPS[0], [4] * 7))
    assert len(queue.plan(2).lines) == 4
    assert len(queue.plan(7).lines) == 1


def test_a_line_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    queue = LineQueue()
    queue.push(request(GROUPS[1], [50, 1, 1]))
    assert tokens_of(queue.plan(1).lines) == [50]


def test_only_waiting_lines_can_be_removed() -> None:
    queue = LineQueue()
    lines = request(GROUPS[0], [3])
    queue.push(lines)
    queue.remove(lines)
    with pytest.raises(KeyError):
        queue.remove(lines)
