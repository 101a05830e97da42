"""Sordino: differential privacy with exact noise and an honest privacy loss.

Names are resolved on first use, so that `import sordino` costs next to nothing.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sordino import errors

if TYPE_CHECKING:
    from sordino import learn, local
    from sordino.accounting.calibrate import largest_count, smallest_scale
    from sordino.accounting.charge import Charge
    from sordino.accounting.filters import TwoMeterFilter, ZcdpFilter
    from sordino.accounting.fixed_in_advance import (
        delta_if_fixed_in_advance,
        epsilon_if_fixed_in_advance,
    )
    from sordino.accounting.group import group
    from sordino.accounting.odometer import Odometer
    from sordino.accounting.total import Total, total
    from sordino.adaptive.holdout import Holdout
    from sordino.adaptive.statistical_queries import StatisticalQueries
    from sordino.answer.answer import Answer
    from sordino.audit.entry import audit
    from sordino.client.remote_session import connect
    from sordino.learn.stream import Stream
    from sordino.ledger.anchor import Anchor
    from sordino.ledger.ledger import Ledger
    from sordino.mechanisms.above_threshold import AboveThreshold
    from sordino.mechanisms.gaussian import Gaussian
    from sordino.mechanisms.key_selection import KeySelection
    from sordino.mechanisms.laplace import Laplace
    from sordino.mechanisms.mechanism import Mechanism, mechanism_from_json
    from sordino.mechanisms.noisy_max import NoisyMax
    from sordino.mechanisms.proportions import Estimate
    from sordino.mechanisms.randomized_response import RandomizedResponse
    from sordino.plan.plan import Plan
    from sordino.privacy import divergence
    from sordino.privacy.budget import Budget
    from sordino.privacy.loss import (
        BestOfManyLoss,
        BoundedRangeLoss,
        DiscreteGaussianLoss,
        DiscreteLaplaceLoss,
        EpsilonDeltaLoss,
        FiniteLoss,
        GaussianLoss,
        GaussianMixtureLoss,
        LaplaceLoss,
        Loss,
        MixedLoss,
        NegativeBinomialRuns,
        PoissonRuns,
        RenyiLoss,
        SampledFiniteLoss,
        SubsampledLoss,
        WithoutReplacementLoss,
        ZcdpLoss,
        truncated_poisson,
    )
    from sordino.privacy.neighbors import Neighbors
    from sordino.privacy.sensitivity import (
        SensitivityWitness,
        global_sensitivity,
        rounded_sensitivity,
    )
    from sordino.query.dataset import Dataset, Table
    from sordino.query.front.terms import (
        any_ as any,  # noqa: A004
    )
    from sordino.query.front.terms import (
        bucket,
        coalesce,
        col,
        concat,
        date_diff,
        date_part,
        date_trunc,
        day,
        every,
        first_value,
        greatest,
        lag,
        lead,
        least,
        lit,
        month,
        quarter,
        row_number,
        time_bucket,
        week,
        when,
        year,
    )
    from sordino.query.front.terms import (
        max_ as max,  # noqa: A004
    )
    from sordino.query.front.terms import (
        min_ as min,  # noqa: A004
    )
    from sordino.session import Session

__version__ = "0.1.0"

_HOME = {
    "AboveThreshold": "mechanisms.above_threshold",
    "Anchor": "ledger.anchor",
    "Answer": "answer.answer",
    "BestOfManyLoss": "privacy.loss",
    "BoundedRangeLoss": "privacy.loss",
    "Budget": "privacy.budget",
    "Charge": "accounting.charge",
    "Dataset": "query.dataset",
    "DiscreteGaussianLoss": "privacy.loss",
    "DiscreteLaplaceLoss": "privacy.loss",
    "EpsilonDeltaLoss": "privacy.loss",
    "Estimate": "mechanisms.proportions",
    "FiniteLoss": "privacy.loss",
    "Gaussian": "mechanisms.gaussian",
    "GaussianLoss": "privacy.loss",
    "GaussianMixtureLoss": "privacy.loss",
    "Holdout": "adaptive.holdout",
    "KeySelection": "mechanisms.key_selection",
    "Laplace": "mechanisms.laplace",
    "LaplaceLoss": "privacy.loss",
    "Ledger": "ledger.ledger",
    "Loss": "privacy.loss",
    "Mechanism": "mechanisms.mechanism",
    "MixedLoss": "privacy.loss",
    "NegativeBinomialRuns": "privacy.loss",
    "Neighbors": "privacy.neighbors",
    "NoisyMax": "mechanisms.noisy_max",
    "Odometer": "accounting.odometer",
    "Plan": "plan.plan",
    "PoissonRuns": "privacy.loss",
    "RandomizedResponse": "mechanisms.randomized_response",
    "RenyiLoss": "privacy.loss",
    "SampledFiniteLoss": "privacy.loss",
    "SensitivityWitness": "privacy.sensitivity",
    "Session": "session",
    "StatisticalQueries": "adaptive.statistical_queries",
    "Stream": "learn.stream",
    "SubsampledLoss": "privacy.loss",
    "Table": "query.dataset",
    "Total": "accounting.total",
    "TwoMeterFilter": "accounting.filters",
    "WithoutReplacementLoss": "privacy.loss",
    "ZcdpFilter": "accounting.filters",
    "ZcdpLoss": "privacy.loss",
    "any": "query.front.terms:any_",
    "bucket": "query.front.terms",
    "coalesce": "query.front.terms",
    "col": "query.front.terms",
    "concat": "query.front.terms",
    "connect": "client.remote_session",
    "date_diff": "query.front.terms",
    "date_part": "query.front.terms",
    "date_trunc": "query.front.terms",
    "day": "query.front.terms",
    "delta_if_fixed_in_advance": "accounting.fixed_in_advance",
    "epsilon_if_fixed_in_advance": "accounting.fixed_in_advance",
    "every": "query.front.terms",
    "first_value": "query.front.terms",
    "global_sensitivity": "privacy.sensitivity",
    "greatest": "query.front.terms",
    "group": "accounting.group",
    "lag": "query.front.terms",
    "largest_count": "accounting.calibrate",
    "lead": "query.front.terms",
    "least": "query.front.terms",
    "lit": "query.front.terms",
    "max": "query.front.terms:max_",
    "mechanism_from_json": "mechanisms.mechanism",
    "min": "query.front.terms:min_",
    "month": "query.front.terms",
    "quarter": "query.front.terms",
    "rounded_sensitivity": "privacy.sensitivity",
    "row_number": "query.front.terms",
    "smallest_scale": "accounting.calibrate",
    "time_bucket": "query.front.terms",
    "total": "accounting.total",
    "truncated_poisson": "privacy.loss",
    "week": "query.front.terms",
    "when": "query.front.terms",
    "year": "query.front.terms",
}
"""Where each name lives. The names of aggregates (`count`, `mean`, ...) are those of `query/aggregates/registry.py`."""

_OTHER_NAMES = {
    **dict.fromkeys(("load", "open", "read_toml"), 'Dataset.load("visits.toml")'),
    **dict.fromkeys(
        ("read_parquet", "read_csv", "from_pandas"),
        'Dataset("visits.parquet", unit=..., columns=...)',
    ),
    **dict.fromkeys(("sql", "query"), 'Session(dataset).sql("SELECT ...", epsilon=0.1)'),
    **dict.fromkeys(("laplace", "LaplaceMechanism"), "Laplace(scale=1)"),
    **dict.fromkeys(("gaussian", "GaussianMechanism"), "Gaussian(scale=1)"),
}
"""What to write instead of some names of other libraries."""

_MODULES = {
    "audit": "audit",
    "divergence": "privacy.divergence",
    "learn": "learn",
    "local": "local",
}
"""Names that are modules; `audit` is one that can be called."""

__all__ = [
    "AboveThreshold",
    "Anchor",
    "Answer",
    "BestOfManyLoss",
    "BoundedRangeLoss",
    "Budget",
    "Charge",
    "Dataset",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "EpsilonDeltaLoss",
    "Estimate",
    "FiniteLoss",
    "Gaussian",
    "GaussianLoss",
    "GaussianMixtureLoss",
    "Holdout",
    "KeySelection",
    "Laplace",
    "LaplaceLoss",
    "Ledger",
    "Loss",
    "Mechanism",
    "MixedLoss",
    "NegativeBinomialRuns",
    "Neighbors",
    "NoisyMax",
    "Odometer",
    "Plan",
    "PoissonRuns",
    "RandomizedResponse",
    "RenyiLoss",
    "SampledFiniteLoss",
    "SensitivityWitness",
    "Session",
    "StatisticalQueries",
    "Stream",
    "SubsampledLoss",
    "Table",
    "Total",
    "TwoMeterFilter",
    "WithoutReplacementLoss",
    "ZcdpFilter",
    "ZcdpLoss",
    "any",
    "audit",
    "bucket",
    "coalesce",
    "col",
    "concat",
    "connect",
    "date_diff",
    "date_part",
    "date_trunc",
    "day",
    "delta_if_fixed_in_advance",
    "divergence",
    "epsilon_if_fixed_in_advance",
    "errors",
    "every",
    "first_value",
    "global_sensitivity",
    "greatest",
    "group",
    "lag",
    "largest_count",
    "lead",
    "learn",
    "least",
    "lit",
    "local",
    "max",
    "mechanism_from_json",
    "min",
    "month",
    "quarter",
    "rounded_sensitivity",
    "row_number",
    "smallest_scale",
    "time_bucket",
    "total",
    "truncated_poisson",
    "week",
    "when",
    "year",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(f"sordino.{_MODULES[name]}")
    elif name in _HOME:
        module, _, other = _HOME[name].partition(":")
        value = getattr(import_module(f"sordino.{module}"), other or name)
    elif not name.startswith("_") and name in (found := _measures()):
        return found[name]
    else:
        other = f". Write so.{_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
        raise AttributeError(
            f"module 'sordino' has no attribute {name!r}{other}",
            name=name,
            obj=sys.modules[__name__],
        )
    globals()[name] = value
    return value


def _measures() -> dict[str, Any]:
    """The aggregates."""
    found: dict[str, Any] = import_module("sordino.query.front.terms").measures()
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_measures(), "__version__"])
