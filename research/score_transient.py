"""Spot machines: every figure that `transient.md` quotes, from the published tables.

NODEWISE_DATA=... python research/score_transient.py [--starts 1000]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from nodewise.completion.choice import least_sure, pareto_mask
from nodewise.plugin import best_interval_s, expected_run_s
from nodewise_transient.deterministic import expect
from nodewise_transient.fitting import choose, empirical, fit
from nodewise_transient.hybrid import hybrid_s
from nodewise_transient.intervals import best_segments, daly_s, restarting, young_s
from nodewise_transient.job import Checkpoints, Group, Job
from nodewise_transient.lifetimes import exponential, weibull
from nodewise_transient.loss import Burst, ChiefLoss, synchronous
from nodewise_transient.provenance import Provenance
from nodewise_transient.servers import shared_speed
from nodewise_transient.simulation import simulate
from nodewise_transient.tuning import best_interval_steps
from nodewise_transient.walk import finish_s
from transient_errors import Learned, icac_errors, left_out_saves, left_out_speeds, policy_ratios
from transient_tables import (
    ICAC_STEPS,
    PER_H,
    SERVER_PER_H,
    lifetimes,
    p3_fleet,
    spot_runs,
    switch_runs,
)

STATED = Provenance(data_set="stated")
GOLDEN = (("K80", "us-central1", 1), ("K80", "us-central1", 8), ("K80", "europe-west1", 1))
GOLDEN_P100 = (("P100", "us-west1", 1), ("P100", "us-west1", 8))


def print_lifetimes(folder: Path) -> None:
    """Fits of lifetimes and their distances."""
    print("## Lifetimes: scale h, shape, KS of Weibull; mean h, KS of exponential; degenerate; chosen")
    distances = []
    for (gpu, region), seen in lifetimes(folder).items():
        one, two = fit(seen, "weibull"), fit(seen, "exponential")
        distances.append((one.ks, two.ks))
        chosen = choose(seen).provenance.law
        parts = f"{one.scale_s / 3600:.1f} {one.shape:.2f} {one.ks:.3f}  {two.scale_s / 3600:.1f} {two.ks:.3f}"
        print(f"{gpu} {region}: {parts}  {one.degenerate} {chosen}")
    print("mean KS: Weibull {:.3f}, exponential {:.3f}".format(*np.mean(distances, axis=0)))
    fleet, _ = p3_fleet(folder)
    seen = fleet.lifetimes(STATED)
    gone = [float(empirical(seen).revoked_by(hour * 3600.0)) for hour in (0.5, 1, 2, 4)]
    one, two = fit(seen, "weibull"), fit(seen, "exponential")
    print("p3: gone by 0.5, 1, 2, 4 h", np.round(gone, 3), f"of {seen.machines}, {seen.events:.0f} removed")
    print(f"p3: Weibull {one.scale_s / 3600:.2f} h, shape {one.shape:.2f}, KS {one.ks:.3f}; ", end="")
    print(f"exponential {two.scale_s / 3600:.2f} h, KS {two.ks:.3f}; chosen {choose(seen).provenance.law}")


def print_replays(folder: Path) -> None:
    """Known losses, and the p3 fleet."""
    runs = spot_runs(folder)
    known, ignored, dollars = icac_errors(runs)
    print(f"\n## ICAC'19 4 x K80 spot: {len(known)} of {len(runs)} runs lost workers")
    print(f"known losses: mean {np.abs(known).mean():.2%}, max {np.abs(known).max():.2%}; ", end="")
    print(
        f"losses ignored: mean {np.abs(ignored).mean():.1%}; cost of all runs: max error ${np.abs(dollars).max():.1e}"
    )
    fleet, end_s = p3_fleet(folder)
    for stall_s in (0.0, 60.0, 120.0):
        work = np.array([10, 50, 100, 200, 250]) * 3600.0
        done = finish_s(fleet.changes_s, fleet.nodes, work, stall_s=stall_s, end_s=end_s)
        print(f"p3, stall {stall_s:.0f} s: 10, 50, 100, 200, 250 node-hours at", np.round(done, 2))
    print("\n## Forecast from CM-DARE's K80 lifetimes instead (region: failed, mean s, losses per finished run, p90 s)")
    clean_s = float(np.mean([run.duration_s for run in runs if not run.revoked.any()]))
    outcomes = []
    for (gpu, region), seen in lifetimes(folder).items():
        if gpu == "K80":
            group = Group(count=4, lifetime=empirical(seen))
            job = Job(
                steps=ICAC_STEPS,
                groups=(group,),
                speeds=np.arange(5) * ICAC_STEPS / clean_s / 4,
                chief=ChiefLoss(policy="fail"),
            )
            outcome = simulate(job, runs=20_000)
            per_run = float(outcome.losses[outcome.finished > 0.0].mean())
            outcomes.append((outcome.p_failure, outcome.time_s.mean, per_run))
            print(region, *(round(value, 3) for value in outcomes[-1]), f"{outcome.time_s.p90:.0f}")
    failed, mean_s, losses = np.array(outcomes).T
    weights = (1 - failed) / (1 - failed).sum()
    print(f"all four: {failed.mean():.1%} fail (seen 1 of 32), {weights @ mean_s:.0f} s ", end="")
    print(f"(seen {np.mean([run.duration_s for run in runs]):.0f}), {weights @ losses:.2f} losses ", end="")
    print(f"(seen {np.mean([run.revoked.sum() for run in runs]):.2f})")


def print_completion(folder: Path) -> None:
    """Closed forms, intervals, and the golden cases."""
    print("\n## Intervals: Young, Daly 1st, higher order, exact s")
    for save_s, hours in ((3.82, 29.6), (3.82, 10.4), (60.0, 2.0), (300.0, 1.0)):
        mean_s = hours * 3600.0
        found = (
            young_s(save_s, mean_s),
            daly_s(save_s, mean_s, order=1),
            daly_s(save_s, mean_s),
            best_interval_s(save_s, mean_s),
        )
        print(f"C {save_s} s, M {hours} h:", *(f"{float(each):.2f}" for each in found))
    law = exponential(7200.0, provenance=STATED)
    job = Job(
        steps=36_000.0,
        groups=(Group(count=1, lifetime=law, replacement_s=(0.0,)),),
        speeds=np.array([0.0, 1.0]),
        reaction=synchronous(120.0),
        checkpoints=Checkpoints(interval_steps=600.0, seconds=30.0),
    )
    closed = float(expected_run_s(36_000.0, 600.0, 30.0, 120.0, 7200.0))
    spread = simulate(job, runs=10_000).time_s
    print(f"Daly's closed form {closed:.1f} s, Monte Carlo {spread.mean:.1f} ± {spread.standard_error:.1f} s, ", end="")
    print(f"p50 {spread.p50:.0f}, p90 {spread.p90:.0f}, p99 {spread.p99:.0f}")
    exact = restarting(law, work_s=36_000.0, segments=60, save_s=30.0, restart_s=120.0)
    print(f"recursion for any law {exact.running_s:.1f} s; best segments", end=" ")
    print(best_segments(law, work_s=36_000.0, save_s=30.0, restart_s=120.0), "closed form", end=" ")
    print(f"{36_000 / float(best_interval_s(30.0, 7200.0)):.1f}; by simulation", end=" ")
    steps, mean_s = best_interval_steps(job, objective="time", runs=4000)
    print(f"{36_000 / steps:.0f} ({mean_s:.0f} s)")
    young = weibull(7200.0, 0.5, provenance=STATED)
    print(
        "Weibull shape 0.5, scale 2 h: best segments",
        best_segments(young, work_s=36_000.0, save_s=30.0, restart_s=120.0),
    )
    print("\n## Golden cases, 4 workers; none replaced: P(finish), mean, p50, p90, mean field;", end=" ")
    print("replaced: mean, p90, losses | fixed point")
    cells = lifetimes(folder)
    for gpu, region, hours in (*GOLDEN, *GOLDEN_P100):
        law = empirical(cells[gpu, region])
        plain, replaced = (
            Job(
                steps=4 * 3600.0 * hours,
                groups=(Group(count=4, lifetime=law, replacement_s=delays),),
                speeds=np.arange(5.0),
            )
            for delays in ((), (165.0,))
        )
        one, two, fixed = simulate(plain, runs=200_000), simulate(replaced, runs=200_000), expect(replaced)
        print(f"{gpu} {region} {hours} h: {1 - one.p_failure:.4f} {one.time_s.mean:.0f} {one.time_s.p50:.0f}", end=" ")
        print(f"{one.time_s.p90:.0f} {expect(plain).time_s:.0f}; {two.time_s.mean:.1f} {two.time_s.p90:.0f}", end=" ")
        print(f"{two.expected_losses:.3f} | {fixed.time_s:.1f} {fixed.losses:.3f}")


def print_speed(folder: Path) -> None:
    """How long 100,000 runs of 16 workers take, and what bursts do."""
    law = empirical(lifetimes(folder)["P100", "us-west1"])
    print("\n## 100,000 runs of 16 workers, 8 h, P100 us-west1, on this core")
    for label, reaction, burst in (
        ("asynchronous", None, Burst()),
        ("asynchronous, bursts", None, Burst(chance=0.5, others=3)),
        ("synchronous", synchronous(60.0), Burst()),
        ("synchronous, bursts", synchronous(60.0), Burst(chance=0.5, others=3)),
    ):
        plain = Job(
            steps=16 * 28_800.0,
            groups=(Group(count=16, lifetime=law, replacement_s=(165.0,), price_per_h=1.0),),
            speeds=np.arange(17.0),
            checkpoints=Checkpoints(interval_steps=16 * 600.0, seconds=4.0),
            burst=burst,
        )
        job = (
            plain
            if reaction is None
            else Job(
                steps=plain.steps,
                groups=plain.groups,
                speeds=plain.speeds,
                checkpoints=plain.checkpoints,
                burst=burst,
                reaction=reaction,
            )
        )
        simulate(job, runs=10)
        start = time.perf_counter()
        outcome = simulate(job, runs=100_000)
        wall_s = time.perf_counter() - start
        spread = outcome.time_s
        print(
            f"{label}: {wall_s:.2f} s; mean {spread.mean:.0f}, p90 {spread.p90:.0f}, p99 {spread.p99:.0f} s", end="; "
        )
        print(f"{outcome.expected_losses:.2f} losses;", outcome.breakdown)


def print_offers(folder: Path) -> None:
    """Choosing among many offers: ResNet-32's speeds by device, and servers that take 60 steps/s."""
    offers: dict[str, Job] = {}
    for (gpu, region), seen in lifetimes(folder).items():
        law, speed = empirical(seen), 4.59 if gpu == "K80" else 12.2
        for count in range(1, 17):
            groups = (Group(count=count, lifetime=law, price_per_h=PER_H[f"{gpu} spot"], replacement_s=(165.0,)),)
            job = Job(
                steps=ICAC_STEPS,
                groups=groups,
                speeds=shared_speed(speed * np.arange(count + 1.0), 60.0),
                servers_per_h=SERVER_PER_H,
            )
            offers[f"{count} x {gpu} {region}"] = job
    simulate(next(iter(offers.values())), runs=10)
    start = time.perf_counter()
    found = {name: simulate(job, runs=2_000) for name, job in offers.items()}
    wall_s = time.perf_counter() - start
    costs = np.array([(each.dollars.mean, each.time_s.p90, each.p_failure) for each in found.values()])
    sure = {name for name, each in found.items() if least_sure(each.p_deadline(3600.0), 2_000) >= 0.95}
    chosen = min(sure, key=lambda name: found[name].dollars.mean)
    efficient = int(pareto_mask(costs).sum())
    print(f"\n## {len(offers)} offers, 2,000 runs each: {wall_s:.2f} s; {efficient} on the frontier; ", end="")
    print(
        f"cheapest within 1 h at 95 %: {chosen}, ${found[chosen].dollars.mean:.2f},",
        f"p90 {found[chosen].time_s.p90:.0f} s",
    )


def print_policies(folder: Path, starts: int) -> None:
    """Policies over time against the cheapest fixed rule."""
    ways: tuple[Learned, ...] = ("both", "past", "others")
    for learned in ways:
        print(f"\n## Policies, {starts} starts, chain from {learned}: cost over on demand alone;", end=" ")
        print("planned over the best fixed")
        ratios = []
        late = 0.0
        for name, job, cost, worst in policy_ratios(folder, starts, learned=learned):
            fixed = {rule: value for rule, value in cost.items() if rule != "planned"}
            ratios.append(cost["planned"] / min(fixed.values()))
            late = max(late, worst)
            shown = ", ".join(f"{rule} {value:.3f}" for rule, value in cost.items() if not rule.startswith("timed"))
            if learned == "both":
                # Which records these are is no matter; their numbers stay where they are.
                print(f"{len(ratios)}: {job}: {shown}; ratio {ratios[-1]:.3f}")
            assert name
        print(f"ratio: mean {np.mean(ratios):.3f}, worst {np.max(ratios):.3f}; late: {late:.4f} of starts at most")


def print_saves_and_switches(folder: Path) -> None:
    """Saves with models left out, and switch points."""
    split, total = left_out_saves(folder)
    print(
        f"\n## Saves, models left out: weights and graph {np.abs(split).mean():.1%} (max {np.abs(split).max():.1%}), ",
        end="",
    )
    print(f"their sum {np.abs(total).mean():.1%}")
    synchronous_s, asynchronous_s, times, _ = switch_runs(folder)
    found = hybrid_s(np.array(list(times)), synchronous_s=synchronous_s, asynchronous_s=asynchronous_s)
    errors = found / np.array(list(times.values())) - 1.0
    shown = ", ".join(f"{share:.2f} {error:+.1%}" for share, error in zip(times, errors))
    print(f"## Switch points: mean {np.abs(errors).mean():.2%}, max {np.abs(errors).max():.2%}: {shown}")


def print_servers(table: Path) -> None:
    """Workers that share servers."""
    print("\n## Speeds of asynchronous clusters from 1 and 4 workers: mean error")
    for job, error in left_out_speeds(table).items():
        print(f"{job}: {error:.1%}")


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=1000)
    starts = parser.parse_args().starts
    folder = Path(os.environ["NODEWISE_DATA"]) / "transient"
    print_lifetimes(folder)
    print_replays(folder)
    print_completion(folder)
    print_speed(folder)
    print_offers(folder)
    print_policies(folder, starts)
    print_saves_and_switches(folder)
    print_servers(folder.parent / "measurements" / "cmdare_async_ps.csv")


if __name__ == "__main__":
    main()
