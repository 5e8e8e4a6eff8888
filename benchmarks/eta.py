"""How wrong the ETA is, on the server model. No server, no wall clock.

    python -m benchmarks.eta [--seeds 10] [--first-seed 0] [--small-at 32]

Runs the story (benchmarks/story.py) and partitions of 500 samples at 32 in flight, looks at 1 … 90
per cent of the work of each partition and of the run, and prints the median absolute error of the
time that remained and how often the 10-90 % range held it; beside it three plain estimators.
Writes benchmarks/eta.svg and exits 1 when a bar is missed. The figures come from the functions
that the service uses: `Speedometer`, `outlook` and `foresee`. What the page would withhold because
too few answers have ended is not counted. Takes 3 to 5 minutes on one core; two seeds one minute.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.eta_plot import draw
from benchmarks.eta_watch import FRACTIONS, RUN_NAME, Said, follow
from benchmarks.story import STORY, STORY_LIMITS, Plan, Work

LARGE = [plan.name for plan in STORY if plan.n_samples >= 1_500]
HELD_LOW, HELD_HIGH = 0.75, 0.90
SMALL_AT = 32
SMALL = tuple(
    Plan(
        name=f"500 of mean {mean:,}",
        class_name="one",
        mean_tokens=mean,
        cap_tokens=10_240 if mean == 1_500 else 16_384,
        n_samples=500,
    )
    for mean in (1_500, 3_793, 6_000, 8_000)
)


def table(title: str, said: Sequence[Said]) -> None:
    """Print signed median, absolute median and share held, by share of the work."""
    print(f"\n{title}: median error | median absolute error, per cent; share within the range")
    print(f"{'':22}" + "".join(f"{fraction:>19.0%}" for fraction in FRACTIONS))
    for name in dict.fromkeys(one.of for one in said):
        cells = []
        for fraction in FRACTIONS:
            mine = [one for one in said if one.of == name and one.fraction == fraction]
            cells.append(_cell(mine) if mine else "–")
        print(f"{name:22}" + "".join(f"{cell:>19}" for cell in cells))


def _cell(said: Sequence[Said]) -> str:
    signed = median(one.error for one in said)
    held = sum(one.is_held for one in said) / len(said)
    return f"{signed * 100:+.1f} | {_error(said) * 100:.1f} {held:4.0%}"


def _error(said: Sequence[Said]) -> float:
    return median(abs(one.error) for one in said)


def lines_of(said: Sequence[Said]) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each estimator: share of the work, median absolute error."""
    lines: dict[str, list[tuple[float, float]]] = {"Longwatch": []}
    for fraction in FRACTIONS:
        mine = [one for one in said if one.fraction == fraction]
        if not mine:
            continue
        lines["Longwatch"].append((fraction, _error(mine)))
        for name in mine[0].naive:
            wrong = median(abs(one.naive[name] / one.truth_s - 1) for one in mine)
            lines.setdefault(name, []).append((fraction, wrong))
    return lines


def print_lines(title: str, said: Sequence[Said]) -> None:
    print(f"\n{title}: median absolute error of each estimator, per cent")
    for name, points in lines_of(said).items():
        print(f"{name:22}" + "".join(f"{x:>6.0%}: {y * 100:<7.1f}" for x, y in points))


def missed(story: Sequence[Said], small: Sequence[Said]) -> list[str]:
    """Return the bars that are missed, in words; print all."""
    large = [one for one in story if one.of in LARGE]
    bars = [
        ("partitions of 1,500 and more, 5 % on", _from(large, 0.05), 0.06),
        ("partitions of 1,500 and more, 25 % on", _from(large, 0.25), 0.03),
        ("the run, 5 % on", _from(_run(story), 0.05), 0.06),
        ("the run, 25 % on", _from(_run(story), 0.25), 0.03),
        ("partitions of 500, 10 % on", _from(small, 0.10), 0.12),
    ]
    wrong = []
    print()
    for name, said, most in bars:
        found = _error(said)
        print(f"{name}: {found:.1%} of {most:.0%}")
        wrong += [name] if found > most else []
    for name, said in (
        ("partitions of 1,500 and more", _from(large, 0.05)),
        ("the run", _from(_run(story), 0.05)),
        ("partitions of 500", _from(small, 0.10)),
        ("all", [*_from(story, 0.05), *_from(small, 0.10)]),
    ):
        held = sum(one.is_held for one in said) / len(said)
        print(f"range of {name}: holds {held:.0%}, 75 to 90 % wanted")
        wrong += [f"range of {name}"] if not HELD_LOW <= held <= HELD_HIGH else []
    return wrong


def _from(said: Sequence[Said], fraction: float) -> list[Said]:
    return [one for one in said if one.fraction >= fraction]


def _run(said: Sequence[Said]) -> list[Said]:
    return [one for one in said if one.of == RUN_NAME]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--small-at", type=int, default=SMALL_AT, help="in flight of the small")
    options = parser.parse_args()
    story: list[Said] = []
    small: list[Said] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        story += follow(Work(seed, STORY, STORY_LIMITS))
        for plan in SMALL:
            alone = follow(Work(seed + int(plan.mean_tokens), [plan], {"one": options.small_at}))
            small += [one for one in alone if one.of != RUN_NAME]
        print(f"seed {seed} done", flush=True)
    table("the story", story)
    table(f"500 samples at {options.small_at} in flight", small)
    large = [one for one in story if one.of in LARGE]
    panels = {
        "Partitions of 1,500 samples and more": large,
        "The run": _run(story),
        "Partitions of 500 samples": small,
    }
    for title, said in panels.items():
        print_lines(title, said)
    plot = draw({title: lines_of(said) for title, said in panels.items()})
    (Path(__file__).parent / "eta.svg").write_text(plot)
    wrong = missed(story, small)
    if wrong:
        print("missed: " + "; ".join(wrong))
        raise SystemExit(1)


if __name__ == "__main__":
    main()
