"""What PyInstaller needs to know about this package, so that a bundled program is complete.

PyInstaller finds this by an entry point while it bundles. It is not a dependency.
"""

from __future__ import annotations

from pathlib import Path


def hook_directories() -> list[str]:
    """Return where the hooks are that PyInstaller runs for packages that a program imports."""
    return [str(Path(__file__).parent)]
