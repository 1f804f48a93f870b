"""Seeds of training steps."""

import torch

from softsearch.training.callbacks.exact_resume import seed_step


def test_seeds_of_steps_depend_on_all_three_numbers() -> None:
    def drawn(*numbers: int) -> tuple[float, ...]:
        seed_step(*numbers)
        return tuple(torch.rand(4).tolist())

    assert drawn(1, 2, 0) == drawn(1, 2, 0)
    found = {drawn(seed, step, rank) for seed in range(3) for step in range(50) for rank in range(4)}
    assert len(found) == 3 * 50 * 4
