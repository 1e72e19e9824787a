"""The benchmark of peers measures a real store, and tells what another cannot do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[1]
SUBJECTS = ("harbour", "violin", "glacier", "bakery", "turbine", "orchard", "lantern", "compass")


def corpus(folder: Path) -> Path:
    """Write a corpus: each document is found by a word that it alone has."""
    documents = [
        {"id": f"d{number}", "content": f"{subject} report number {number} was filed", "ts": number}
        for number, subject in enumerate(
            f"{word}{place}" for place in range(5) for word in SUBJECTS
        )
    ]
    queries = [
        {"text": f"what of the {subject}{place}?", "relevant": [f"d{8 * place + number}"]}
        for place in range(5)
        for number, subject in enumerate(SUBJECTS)
    ]
    path = folder / "reports.json"
    path.write_text(
        json.dumps([{"name": "reports", "documents": documents, "queries": queries}]), "utf-8"
    )
    return path


def run(folder: Path, *words: str) -> tuple[str, dict[str, Any]]:
    """Run the benchmark where each peer's environment is this one."""
    environments = folder / "environments"
    environments.mkdir()
    for peer in ("agent-memory", "langgraph"):
        (environments / peer).symlink_to(sys.prefix)
    figures = folder / "figures.json"
    command = [sys.executable, "-m", "bench.peers", str(corpus(folder)), "--embedder", "wordllama"]
    command += ["--environments", str(environments), "--json", str(figures), *words]
    done = subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(figures.read_text("utf-8"))


@pytest.mark.skipif(sys.platform == "win32", reason="environments have bin/python elsewhere")
def test_a_peer_is_measured_and_one_that_fails_is_a_row(tmp_path: Path) -> None:
    printed, figures = run(tmp_path, "--peers", "langgraph", "agent-memory by keyword")
    ours = figures["agent-memory by keyword"]
    assert ours["failed"] == {}
    assert ours["recall"]["reports"] == [100.0, 100.0, 100.0]
    assert ours["memories"] == 40
    assert ours["killed"]["kills"] == 10
    assert ours["killed"]["acknowledged"] >= 10
    assert ours["killed"]["lost"] == 0
    assert ours["writers"] == {
        "opened": 2,
        "acknowledged": 40,
        "refused": 0,
        "lost": 0,
        "errors": {},
    }
    assert len(ours["search_wall"]) == 40
    # what is not in its environment
    assert "langgraph.store.sqlite" in figures["langgraph"]["failed"]["store"]
    assert "FAILED: store" in printed
