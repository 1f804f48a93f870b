"""The execution provider that a user asks for is used, or it is an error."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softsearch import Translator
from softsearch.errors import ConfigError
from softsearch.runtime.cli import main
from softsearch.runtime.providers import check_provider, find_provider


def test_auto_is_the_first_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "onnxruntime.get_available_providers",
        lambda: ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
    )
    assert find_provider("auto") == "CUDAExecutionProvider"
    assert find_provider("tensorrt") == "TensorrtExecutionProvider"
    assert find_provider("cpu") == "CPUExecutionProvider"


@pytest.mark.parametrize("provider", ["auto", "cpu"])
def test_a_machine_without_a_gpu_translates(bundle_dir: Path, provider: Any) -> None:
    assert Translator(bundle_dir, provider=provider).translate(["one"])[0].text


def test_a_provider_that_is_not_installed(bundle_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(bundle_dir), "--provider", "cuda"]) == 2
    error = capsys.readouterr().err
    assert "provider is cuda, but this ONNX Runtime" in error
    assert "has only cpu; replace its package with the one for cuda, such as onnxruntime-gpu" in error


def test_a_provider_that_does_not_exist(bundle_dir: Path) -> None:
    wrong: Any = "gpu"
    with pytest.raises(ConfigError, match="provider is 'gpu', expected one of auto, cpu, cuda"):
        Translator(bundle_dir, provider=wrong)


def test_a_silent_fall_back_is_an_error_and_with_auto_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    session = SimpleNamespace(get_providers=lambda: ["CPUExecutionProvider"])  # as where the driver is too old
    with pytest.raises(ConfigError, match="uses CPUExecutionProvider instead of CUDAExecutionProvider"):
        check_provider(session, "cuda", "CUDAExecutionProvider")
    with caplog.at_level(logging.WARNING):
        check_provider(session, "auto", "CUDAExecutionProvider")
    assert "instead of CUDAExecutionProvider" in caplog.text
