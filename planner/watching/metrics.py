"""What `watch` tells of itself, as Prometheus' text: counters of the process, gauges of the last round."""

from collections.abc import Iterator

from planner.watching.rounds import Round

PREFIX = "moeplan_watch_"
HELP = {
    "rounds_total": "Rounds since the process began.",
    "windows_total": "Windows of load heard since the process began.",
    "faults_total": "Things that could not be read, kept or swapped.",
    "plans_total": "Plans that paid and were written.",
    "swaps_total": "Plans that were handed to the engine.",
    "windows": "Windows that ever came into the state file.",
    "pays": "1 where another plan pays by the last look, else 0.",
    "gain_ratio": "Share of a whole step that another plan would save, predicted.",
    "step_seconds": "A whole step by the plan that runs, predicted.",
    "swap_seconds": "What the swap to it would take, predicted or as given.",
    "trust_ratio": "Share of the promises of earlier swaps that was kept.",
    "present_since_window": "The first window of the load as it is now.",
    "planned_max_over_mean": "Busiest GPU beside the mean one under the plan that runs, predicted.",
    "served_max_over_mean": "The same as the server itself tells it.",
}


class Metrics:
    """Counters and gauges, by the rounds so far."""

    def __init__(self) -> None:
        self._values: dict[str, float] = dict.fromkeys((name for name in HELP if name.endswith("_total")), 0)

    def add(self, found: Round) -> None:
        counted = (1, found.heard, found.faults, found.wrote is not None, found.handed_over)
        names = ("rounds", "windows", "faults", "plans", "swaps")
        for name, count in zip(names, counted, strict=True):
            self._values[f"{name}_total"] += count
        self._values["windows"] = found.number
        self._values |= {name: value for name, value in found.signals.items() if name in HELP}
        if found.look is not None:
            verdict = found.look.verdict
            self._values |= {
                "pays": float(verdict.pays),
                "gain_ratio": verdict.gain,
                "step_seconds": verdict.step_seconds,
                "swap_seconds": verdict.swap_seconds,
                "trust_ratio": verdict.trust,
                "present_since_window": float(found.look.present),
                "planned_max_over_mean": found.look.running_max_over_mean,
            }

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, text in HELP.items():
            if name in self._values:
                kind = "counter" if name.endswith("_total") else "gauge"
                yield f"# HELP {PREFIX}{name} {text}"
                yield f"# TYPE {PREFIX}{name} {kind}"
                yield f"{PREFIX}{name} {self._values[name]:.9g}"
