"""Benchmarks, each paired with its baseline in one run; one JSON object per line.

``python bench/run.py [NAME...]`` runs those whose module is named, else all.
"""

from __future__ import annotations

import sys

import access
import architectures
import capacity
import console
import curves
import diagnoses
import first_answers
import growth
import hosts
import http_json
import ingest
import large_site
import long_calls
import overload
import partitioning
import planning
import policies
import recorder
import replay
import rpc
import scaling
import simulate
import simulator
import site_load
import spot
import start
import traces

import clients

MODULES = {
    "rpc": rpc,
    "access": access,
    "http_json": http_json,
    "architectures": architectures,
    "ingest": ingest,
    "long_calls": long_calls,
    "curves": curves,
    "hosts": hosts,
    "scaling": scaling,
    "partitioning": partitioning,
    "first_answers": first_answers,
    "planning": planning,
    "policies": policies,
    "simulator": simulator,
    "spot": spot,
    "traces": traces,
    "replay": replay,
    "diagnoses": diagnoses,
    "simulate": simulate,
    "start": start,
    "growth": growth,
    "recorder": recorder,
    "clients": clients,
    "overload": overload,
    "capacity": capacity,
    "console": console,
    "site_load": site_load,
    "large_site": large_site,
}


def main() -> int:
    """Run them and print."""
    wanted = sys.argv[1:] or list(MODULES)
    unknown = [name for name in wanted if name not in MODULES]
    if unknown:
        print(f"no benchmark is named {unknown[0]!r}; there are: {', '.join(MODULES)}", file=sys.stderr)
        return 2
    for name in wanted:
        for result in MODULES[name].run():
            print(result.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
