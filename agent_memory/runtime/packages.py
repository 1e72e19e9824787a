"""Optional packages: whether they are installed, and the error if they are not."""

from __future__ import annotations

from agent_memory.errors import ConfigurationError


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    from importlib.util import find_spec  # noqa: PLC0415 - seldom used

    return find_spec(package) is not None


def require_package(package: str, *, extra: str | None) -> None:
    """Raise ``ConfigurationError`` that says what to install if a package is missing."""
    if not is_installed(package):
        wanted = package if extra is None else f"'agent-memory[{extra}]'"
        raise ConfigurationError(f"the package {package} is not installed: pip install {wanted}")
