"""TensorBoard's tab HPARAMS has the options of a run with the scores of its test."""

from pathlib import Path

from lightning.pytorch.loggers import TensorBoardLogger

from softsearch.training.loggers.metrics_csv import MetricsFile
from softsearch.training.loggers.tables_and_images import log_test


def test_runs_can_be_compared_by_their_options(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    board = TensorBoardLogger(tmp_path, name=None, version="tensorboard", default_hp_metric=False)
    board.log_hyperparams({"model": {"hidden_dim": 8}, "optimizer": {"lr": 0.5}, "run_dir": "x", "freeze": []})
    log_test([board, MetricsFile(path=tmp_path / "metrics.csv")], {"test/bleu": 30.0}, 7)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("test/bleu")] == [(7, 30.0)]
    contents = events.summary_metadata.items()
    parsed = {tag: HParamsPluginData.FromString(data.plugin_data.content) for tag, data in contents if "hparams" in tag}
    options = parsed["_hparams_/session_start_info"].session_start_info.hparams
    assert options["model/hidden_dim"].number_value == 8
    assert options["optimizer/lr"].number_value == 0.5
    assert "run_dir" not in options
    metrics = parsed["_hparams_/experiment"].experiment.metric_infos
    assert [metric.name.tag for metric in metrics] == ["test/bleu"]
    assert (tmp_path / "metrics.csv").read_text().split() == ["step,test/bleu", "7,30.0"]
