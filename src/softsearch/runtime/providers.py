"""Execution providers of ONNX Runtime: the requested one compared with the one in use."""

import logging
from typing import Any, Literal, get_args

from softsearch.errors import ConfigError, SoftsearchError

Provider = Literal["auto", "cpu", "cuda", "tensorrt", "rocm", "openvino", "coreml", "dml"]
PROVIDERS = get_args(Provider)
_NAMES: dict[str, str] = {  # in auto's order of choice
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "dml": "DmlExecutionProvider",
    "cpu": "CPUExecutionProvider",
}
log = logging.getLogger(__name__)


def find_provider(provider: Provider) -> str:
    """Returns ONNX Runtime's name for a provider; for ``auto`` the first one installed, the CPU last.

    Raises:
        ConfigError: there is no such provider, or this installation of ONNX Runtime lacks it.
    """
    import onnxruntime  # not needed for --help

    available = onnxruntime.get_available_providers()
    here = [name for name, full in _NAMES.items() if full in available]
    if provider == "auto":
        return _NAMES[here[0]]
    if provider not in _NAMES:
        raise ConfigError(f"provider is {provider!r}, expected one of {', '.join(PROVIDERS)}; change provider")
    if provider not in here:
        raise ConfigError(
            f"provider is {provider}, but this ONNX Runtime {onnxruntime.__version__} has only {', '.join(here)}; "
            f"replace its package with the one for {provider}, such as onnxruntime-gpu for cuda, or choose another "
            "provider"
        )
    return _NAMES[provider]


def not_installed() -> SoftsearchError:
    """The error of a host without ONNX Runtime."""
    from softsearch.process import how_to_install

    return SoftsearchError(
        f"ONNX Runtime is not installed: {how_to_install('cpu')}; or with gpu for cpu, on a host with an NVIDIA GPU"
    )


def check_provider(session: Any, provider: Provider, expected: str) -> None:
    """Compares the provider that a session uses with the requested one; ONNX Runtime does not report it.

    Raises:
        ConfigError: the session uses another provider; with ``auto`` this is only logged.
    """
    used = session.get_providers()[0]
    if used != expected:
        message = (
            f"ONNX Runtime uses {used} instead of {expected}, whose libraries or device it cannot open; check the "
            "driver and its versions, or choose provider=cpu"
        )
        if provider != "auto":
            raise ConfigError(message)
        log.warning("%s", message)
