"""What PyInstaller asks of a package, so that a program bundled with it has all it needs.

PyInstaller finds this by an entry point. It is no dependency: it runs this while it bundles.
"""

from __future__ import annotations

from pathlib import Path


def hook_directories() -> list[str]:
    """Return where the hooks are that PyInstaller runs for packages that a program imports."""
    return [str(Path(__file__).parent)]
