"""``python -m tests.survival``: run the campaigns and print the table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict

import apsw

from .campaigns import CAMPAIGNS
from .tally import Tally, table


def main() -> int:
    """Run what is asked for; 0 when everything was survived."""
    arguments = _arguments()
    chosen = [c for c in CAMPAIGNS if not arguments.only or c.module in arguments.only]
    print(
        f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()},"
        f" SQLite {apsw.sqlite_lib_version()}, seed {arguments.seed}"
    )
    found: dict[str, Tally] = {}
    passed = True
    for campaign in chosen:
        cases = arguments.cases or (campaign.full if arguments.full else campaign.short)
        print(f"{campaign.name}: {cases:,} …", file=sys.stderr, flush=True)
        tally = found[campaign.name] = campaign.run(cases, arguments.seed)
        passed = passed and campaign.passed(tally)
        if not campaign.passed(tally):
            print(f"{campaign.name}: NOT AS IT MUST BE", *tally.notes, sep="\n  ", file=sys.stderr)
    print(json.dumps({name: asdict(t) for name, t in found.items()}, indent=1) if arguments.json
          else _report(found))  # fmt: skip
    return 0 if passed else 1


def _report(found: dict[str, Tally]) -> str:
    details = [
        f"{name}: " + ", ".join(f"{number:,} {what}" for what, number in tally.details.items())
        for name, tally in found.items()
        if tally.details
    ]
    return "\n".join([table(found), "", *details])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.survival",
        description="Try what a memory must survive, and print what was lost: nothing, it must be.",
    )
    names = list(dict.fromkeys(campaign.module for campaign in CAMPAIGNS))
    parser.add_argument("--full", action="store_true", help="at length: about an hour on two cores")
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="CAMPAIGN", help=", ".join(names)
    )
    parser.add_argument("--cases", type=int, help="how many cases of each, instead")
    parser.add_argument("--seed", type=int, default=1, help="another run of the dice (1)")
    parser.add_argument("--json", action="store_true", help="all counts, as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
