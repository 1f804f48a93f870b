"""One training step, against the same computed by hand."""

from collections.abc import Callable
from functools import partial

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins.precision import MixedPrecision
from torch.nn import functional
from torch.optim import SGD, Adadelta, Adam, Optimizer
from torch.utils.data import DataLoader

from softsearch.data.dataset import Batch
from softsearch.errors import ConfigError
from softsearch.models.init import gaussian
from softsearch.models.loss import CrossEntropy, Loss, Per
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import BOS, EOS, PAD
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.faults.step_guard import Fault
from softsearch.training.interface import TrainingMethod, TrainingStep, teacher_forcing
from softsearch.training.module import TranslationModule, make_optimizer
from softsearch.training.optimizer.lazy_adam import LazyAdam
from softsearch.training.optimizer.schedules import constant

BATCHES = [
    Batch(torch.tensor([[4, 5, EOS], [6, EOS, PAD]]), torch.tensor([[BOS, 7, 8, 9, EOS], [BOS, 5, EOS, PAD, PAD]])),
    Batch(torch.tensor([[9, EOS]]), torch.tensor([[BOS, 4, EOS]])),
]


SGD_01 = partial(SGD, lr=0.1)


def make_module(
    per: Per = "token",
    optimizer: Callable[..., Optimizer] = SGD_01,
    model: str = "rnnsearch",
    *,
    compiles: bool = False,
) -> TranslationModule:
    return TranslationModule(
        compiles=compiles,
        model=small_model(model).float().train(),
        loss=CrossEntropy(smoothing=0.1, per=per),
        optimizer=optimizer,
        scheduler=partial(constant, warmup_steps=1),
    )


def make_trainer(**options: object) -> lightning.Trainer:
    plain = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        enable_model_summary=False,
        **(plain | options),  # type: ignore[arg-type]
    )


def loader(batches: list[Batch]) -> DataLoader[Batch]:
    return DataLoader(batches, batch_size=None)  # type: ignore[arg-type]


def losses(module: TranslationModule, batch: Batch, smoothing: float) -> tuple[torch.Tensor, int]:
    """The summed loss of the real target tokens, and their number."""
    logits = module.model(batch.src_tokens, batch.tgt_tokens[:, :-1]).flatten(0, 1)
    targets = batch.tgt_tokens[:, 1:].flatten()
    total = functional.cross_entropy(logits, targets, ignore_index=PAD, label_smoothing=smoothing, reduction="sum")
    return total, int((targets != PAD).sum())


@pytest.mark.parametrize(("per", "units"), [("token", 6), ("sentence", 2)])
def test_a_step_descends_the_mean_loss_of_the_real_units(per: Per, units: int) -> None:
    module, reference = make_module(per), make_module()
    make_trainer(max_steps=1, num_sanity_val_steps=0).fit(module, loader(BATCHES[:1]), loader(BATCHES))
    total, tokens = losses(reference, BATCHES[0], smoothing=0.1)
    assert tokens == 6
    torch.testing.assert_close(module.last_loss, (total / units).detach())
    nll = losses(reference, BATCHES[0], smoothing=0)[0] / tokens  # as validations measure it
    torch.testing.assert_close(module.last_nll, nll.detach())
    gradients = torch.autograd.grad(total / units, list(reference.model.parameters()))
    for after, before, gradient in zip(module.model.parameters(), reference.model.parameters(), gradients, strict=True):
        torch.testing.assert_close(after, before - 0.1 * gradient)


def test_adadelta_is_the_papers_only_with_the_papers_loss() -> None:
    """ADR 0014: with eps of the paper and a loss per token, updates are several times too small, whatever the rate."""
    words = 25
    batch = Batch(torch.tensor([[4, 5, EOS]]), torch.tensor([[BOS, *range(4, 14), *range(4, 16), 4, 5, EOS]]))
    assert batch.tgt_tokens.shape[1] - 1 == words

    def trained(per: Per, **options: float) -> torch.Tensor:
        module = make_module(per, partial(Adadelta, rho=0.95, **options)).double()
        torch.manual_seed(0)
        gaussian(module.model, std=0.01, attention_std=0.001)  # small weights as in the paper, and so small gradients
        before = torch.nn.utils.parameters_to_vector(module.model.parameters()).detach().clone()
        trainer = make_trainer(max_steps=3, num_sanity_val_steps=0, precision="64-true")
        trainer.fit(module, loader([batch] * 3), loader([batch]))
        return torch.nn.utils.parameters_to_vector(module.model.parameters()).detach() - before

    paper = trained("sentence", lr=1.0, eps=1e-6)
    torch.testing.assert_close(trained("token", lr=words, eps=1e-6 / words**2), paper, rtol=1e-9, atol=1e-15)
    assert 1e-6 / words**2 == pytest.approx(1.6e-9)
    assert trained("token", lr=1.0, eps=1e-6).abs().median() < paper.abs().median() / 5


def test_validation_is_the_mean_over_tokens_not_batches() -> None:
    module = make_module()
    trainer = make_trainer()
    trainer.validate(module, loader(BATCHES), verbose=False)
    totals = [losses(module, batch, smoothing=0.0) for batch in BATCHES]
    expected = sum(float(total.detach()) for total, _ in totals) / sum(tokens for _, tokens in totals)
    assert float(trainer.callback_metrics["val/loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(trainer.callback_metrics["val/perplexity"]) == pytest.approx(2.718281828**expected, rel=1e-5)


@pytest.mark.parametrize("rate", [-1.0, "fast"])
def test_a_refused_option_of_the_optimizer_is_our_own_error(rate: object) -> None:
    module = make_module()
    module.optimizer = partial(SGD, lr=rate)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"optimizer: .* change that option of optimizer"):
        module.configure_optimizers()


def trained(*, sparse: bool, **trainer: object) -> list[torch.Tensor]:
    """The weights after a step of a model whose embeddings have gradients of their rows, or dense ones."""
    module = make_module()
    module.model = small_model("rnnsearch", "model.embeddings.tie=none").float().train()
    for part in module.model.modules():
        if isinstance(part, torch.nn.Embedding):
            part.sparse = sparse
    make_trainer(max_steps=1, num_sanity_val_steps=0, **trainer).fit(module, loader(BATCHES[:1]), loader(BATCHES))
    return [parameter.detach() for parameter in module.model.parameters()]


@pytest.mark.parametrize("algorithm", ["norm", "value"])
@pytest.mark.parametrize("clip", [0.01, 0.1, 1e6])
def test_sparse_gradients_are_clipped_as_dense_ones_are(clip: float, algorithm: str) -> None:
    options = {"gradient_clip_val": clip, "gradient_clip_algorithm": algorithm}
    found, expected = (trained(sparse=sparse, **options) for sparse in (True, False))
    torch.testing.assert_close(found, expected)


def test_clipping_limits_the_norm_of_all_gradients_or_each_of_them() -> None:
    vector = torch.nn.utils.parameters_to_vector
    before = vector(small_model("rnnsearch", "model.embeddings.tie=none").float().parameters()).detach()
    steps = {
        algorithm: (vector(trained(sparse=False, gradient_clip_val=clip, gradient_clip_algorithm=algorithm)) - before)
        for algorithm, clip in ((None, None), ("norm", 0.01), ("value", 0.0001))
    }
    free = -10 * steps[None]  # the learning rate is 0.1
    torch.testing.assert_close(steps["norm"], -0.1 * free * (0.01 / free.norm()), rtol=1e-3, atol=1e-7)
    assert (free.abs() > 0.0001).any()
    assert (free.abs() < 0.0001).any()
    torch.testing.assert_close(steps["value"], -0.1 * free.clamp(-0.0001, 0.0001), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_without_clipping_gradients_stay_as_they_are(precision: str) -> None:
    free, wide = (trained(sparse=False, precision=precision, gradient_clip_val=clip) for clip in (None, 1e6))
    assert all(map(torch.equal, free, wide))


def test_an_optimizer_that_takes_no_sparse_gradients_is_refused_before_training() -> None:
    sparse = small_model("rnnsearch", "+model.embeddings.sparse=true")
    for taken, net in ((LazyAdam, sparse), (SGD_01, sparse), (Adam, small_model("rnnsearch"))):
        make_optimizer(taken, net)
    decays = partial(SGD, weight_decay=0.1)
    for refused, name in ((Adam, "Adam"), (partial(SGD, fused=True), "fused SGD"), (decays, "SGD with weight_decay")):
        with pytest.raises(
            ConfigError, match=rf"but {name} does not support sparse gradients; set optimizer=lazy_adam"
        ):
            make_optimizer(refused, sparse)


def spoiled(step: TrainingStep) -> tuple[Loss, torch.Tensor]:
    """Teacher forcing with a loss that is NaN at the second step."""
    found, tokens = teacher_forcing(step)
    return (found._replace(smoothed=found.smoothed * torch.nan) if step.number == 1 else found), tokens


def test_what_a_method_logs_is_kept_and_of_a_step_without_memory_it_is_nothing() -> None:
    noted: list[dict[str, float]] = []

    def method(step: TrainingStep) -> tuple[Loss, torch.Tensor]:
        step.log("number", step.number)
        if step.number == 1 and len(step.batch.src_tokens) > 1:  # not the placeholder
            raise torch.OutOfMemoryError
        return teacher_forcing(step)

    class Watch(Callback):
        def on_train_batch_end(self, *_: object) -> None:
            noted.append({name: float(value) for name, value in module.last_logged.items()})

    module = make_module()
    module.method = method
    trainer = make_trainer(max_steps=3, num_sanity_val_steps=0, callbacks=[Watch()])
    trainer.fit(module, loader(BATCHES[:1] * 3), loader(BATCHES))
    assert [one["number"] for one in noted] == [0, pytest.approx(torch.nan, nan_ok=True), 2]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_clip_val": 0.1},
        {"gradient_clip_val": 0.1, "gradient_clip_algorithm": "value"},
        {"gradient_clip_val": 0.1, "precision": "bf16-mixed"},
    ],
    ids=["free", "norm", "value", "bf16"],
)
def test_a_loss_that_is_not_finite_leaves_everything_alone(options: dict[str, object], sparse: bool) -> None:
    """Two steps around a spoiled one are two steps: momentum would show any change of the optimizer's state."""

    def weights(batches: list[Batch], method: TrainingMethod) -> tuple[int, list[torch.Tensor]]:
        module = make_module()
        module.model = small_model("rnnsearch", "model.embeddings.tie=none").float().train()
        module.optimizer, module.method = partial(SGD, lr=0.1, momentum=0.9), method
        for part in module.model.modules():
            if isinstance(part, torch.nn.Embedding):
                part.sparse = sparse
        trainer = make_trainer(max_steps=len(batches), num_sanity_val_steps=0, **options)
        trainer.fit(module, loader(batches), loader(BATCHES))
        return trainer.global_step, [parameter.detach() for parameter in module.model.parameters()]

    first, second = BATCHES
    step, found = weights([first, second, second], spoiled)
    assert step == 3
    assert all(map(torch.equal, found, weights([first, second], teacher_forcing)[1]))


@pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler.step")  # the scaler skips the first step
@pytest.mark.parametrize("fused", [False, True])
def test_a_scaler_of_gradients_finds_its_scale_and_a_spoiled_loss_is_still_skipped(fused: bool) -> None:
    """float16 on the CPU, where Lightning offers none: a first scale that is too large is halved until it fits."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=1000)
    module, faults = make_module(), []
    module.optimizer = partial(Adam, lr=0.01, fused=fused)

    class Watch(Callback):
        def on_train_batch_end(self, *_: object) -> None:
            faults.append(module.guard.fault)

    before = [parameter.detach().clone() for parameter in module.model.parameters()]
    trainer = make_trainer(
        max_steps=30,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
        plugins=[MixedPrecision("16-mixed", "cpu", scaler)],
        callbacks=[Watch(), Dashboard()],
        log_every_n_steps=1,
    )
    module.method = spoiled
    trainer.fit(module, loader(BATCHES[:1] * 30), loader(BATCHES))
    assert [step for step, fault in enumerate(faults) if fault] == [1]
    assert faults[1] == Fault(loss=True, gradient=False, exhausted=False)
    assert 1 < scaler.get_scale() < 2.0**30
    assert 0 < float(trainer.callback_metrics["grad_norm/total"]) < 100
    after = list(module.model.parameters())
    assert all(bool(parameter.isfinite().all()) for parameter in after)
    assert not all(map(torch.equal, before, after))


def test_a_compiled_model_trains_as_it_does_and_stays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        compiled.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))  # no compiler of C++ is needed
    sentences = [[*range(4, 4 + length), EOS] for length in range(3, 9)]
    batches = [Batch(torch.tensor([ids] * 2), torch.tensor([[BOS, *ids]] * 2)) for ids in sentences]
    weights = []
    for compiles in (False, True):
        torch._dynamo.reset()
        module = make_module(compiles=compiles, model="transformer_tiny")
        names = [*module.state_dict()]
        make_trainer(max_steps=6, num_sanity_val_steps=0).fit(module, loader(batches), loader(BATCHES[:1]))
        assert [*module.state_dict()] == names
        assert "features" not in vars(module.model)
        assert bool(compiled) == compiles
        weights.append(module.state_dict())
    assert len(compiled) <= 3  # for training, whatever the length, and for validation
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight)
