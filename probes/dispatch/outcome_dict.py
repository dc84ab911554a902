"""The outcome of a validation run as plain data: schema 'moeplan/validation/1' (docs/formats.md)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from planner.topology import Topology
from probes.dispatch.outcome import Outcome
from probes.dispatch.timed import EXCHANGES, Timed
from probes.dispatch.verdict import Verdict
from probes.dispatch.verdict.causes import Finding, Fitted
from probes.dispatch.verdict.figures import Figures, of_layer
from probes.dispatch.verdict.gain import Gain
from probes.dispatch.verdict.tolerance import Tolerance
from probes.dispatch.verdict.words import how_to_check, suspect_words

SCHEMA = "moeplan/validation/1"


def outcome_to_dict(outcome: Outcome) -> dict[str, Any]:
    report, verdict, topology = outcome.report, outcome.verdict, outcome.topology
    return {
        "schema": SCHEMA,
        "ok": outcome.ok,
        "answer": outcome.answer,
        "device": report.device,
        "hosts": list(report.hosts),
        **asdict(outcome.scope),
        "layers": list(report.layer_ids),
        "checks": [asdict(check) for check in report.checks],
        "verdict": None if verdict is None else _verdict(verdict, topology),
        "unjudged": outcome.unjudged,
        "measured_seconds": outcome.measured_seconds,
        "predicted_seconds": outcome.predicted_seconds,
        "dispatch_bytes": {side: bytes_GG.tolist() for side, bytes_GG in report.bytes_GG.items()},
        "resources": [one.name for one in topology.resources],
        "compute_seconds_G": {side: row_G.tolist() for side, row_G in report.compute_seconds_G.items()},
        "timed": [_timed(one, report.timed_phases, verdict) for one in outcome.timed],
        "notes": list(report.notes),
    }


def _verdict(verdict: Verdict, topology: Topology) -> dict[str, Any]:
    return {
        "state": verdict.state,
        "judged": list(verdict.judged),
        "tolerances": {phase: _tolerance(one) for phase, one in verdict.tolerances.items()},
        "phases": [
            {
                "side": one.side,
                "phase": one.phase,
                **_figures(one.whole),
                "mape": one.mape,
                "bias": one.bias,
                "modelled_mape": one.modelled_mape,
                "modelled_bias": one.modelled_bias,
                "holds": one not in verdict.off,
            }
            for one in verdict.phases
        ],
        "gains": [_gain(one) for one in verdict.gains],
        "slowest_rank": verdict.slowest_rank,
        "waited_for": verdict.waited_for,
        "cause": None if verdict.cause is None else _cause(verdict.cause, topology),
    }


def _tolerance(one: Tolerance) -> dict[str, Any]:
    return {
        "share": _known(one.share),
        "law": one.law.share,
        "noise": _known(one.noise),
        "asked": one.asked,
        "reason": one.reason,
    }


def _known(figure: float) -> float | None:
    """Of a single repeat nothing is known of noise."""
    return figure if np.isfinite(figure) else None


def _gain(one: Gain) -> dict[str, Any]:
    return {
        "against": one.against,
        "phases": list(one.phases),
        "measured": one.measured,
        "low": _known(one.low),
        "high": _known(one.high),
        "promised": one.promised,
        "drawn": one.drawn,
        "tolerance": _known(one.tolerance),
        "state": one.state,
    }


def _cause(cause: Finding, topology: Topology) -> dict[str, Any]:
    return {
        "explains": cause.explains,
        "likeliest": _fitted(cause.best, topology),
        "alike": [_fitted(one, topology) for one in cause.alike],
        "next": None if cause.next is None else _fitted(cause.next, topology),
        "error_without": cause.left_without,
        "to_do": how_to_check(cause, topology),
    }


def _fitted(one: Fitted, topology: Topology) -> dict[str, Any]:
    return {
        "kind": one.suspect.kind,
        "what": one.suspect.what,
        "figure": one.x if one.suspect.free else None,
        "error": one.left,
        "text": suspect_words(one, topology),
    }


def _timed(one: Timed, phases: Sequence[str], verdict: Verdict | None) -> dict[str, Any]:
    """One layer under one side, with the seconds of every rank and repeat."""
    return {
        "side": one.side,
        "layer": one.layer_id,
        "row": one.row,
        "phases": {phase: _phase(one, phase, verdict) for phase in phases},
    }


def _phase(one: Timed, phase: str, verdict: Verdict | None) -> dict[str, Any]:
    found: dict[str, Any] = {**_figures(of_layer(one, phase)), "seconds": one.seconds_GN[phase].tolist()}
    if phase in EXCHANGES:
        found["resource_seconds"] = one.expected.drawn_R[phase].tolist()
        found["start_seconds"] = one.expected.start[phase]
    waits = [
        layer.wait
        for layer in (verdict.layers if verdict is not None else ())
        if (layer.side, layer.row, layer.phase) == (one.side, one.row, phase) and layer.wait is not None
    ]
    return {**found, "bottleneck": asdict(waits[0]) if waits else None}


def _figures(one: Figures) -> dict[str, float]:
    return {
        "median": one.median,
        "p95": one.p95,
        "spread": one.spread,
        "modelled": one.modelled,
        "drawn": one.drawn,
        "error": one.error,
        "modelled_error": one.modelled_error,
    }
