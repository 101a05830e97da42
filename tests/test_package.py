"""The public surface, how light it is, and which room may import which."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import sordino as so

SOURCE = Path(so.__file__).parent


@cache
def nodes(path: Path) -> list[ast.AST]:
    """The imports and attributes in a file of the package."""
    found = ast.walk(ast.parse(path.read_text()))
    return [node for node in found if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)]


def test_public_names_are_pinned() -> None:
    assert so.__all__ == [
        "AboveThreshold", "Anchor", "Answer", "BestOfManyLoss", "BoundedRangeLoss", "Budget", "Charge", "Dataset",
        "DiscreteGaussianLoss", "DiscreteLaplaceLoss", "EpsilonDeltaLoss", "Estimate", "FiniteLoss", "Gaussian",
        "GaussianLoss", "GaussianMixtureLoss", "Holdout", "KeySelection", "Laplace", "LaplaceLoss", "Ledger", "Loss",
        "Mechanism", "MixedLoss", "NegativeBinomialRuns", "Neighbors", "NoisyMax", "Odometer", "Plan", "PoissonRuns",
        "RandomizedResponse", "RenyiLoss", "SampledFiniteLoss", "SensitivityWitness", "Session", "StatisticalQueries",
        "Stream", "SubsampledLoss", "Table", "Total", "TwoMeterFilter", "WithoutReplacementLoss", "ZcdpFilter", "ZcdpLoss",
        "any", "audit", "bucket", "coalesce", "col", "concat", "connect", "date_diff", "date_part", "date_trunc", "day",
        "delta_if_fixed_in_advance", "divergence", "epsilon_if_fixed_in_advance", "errors", "every", "first_value",
        "global_sensitivity", "greatest", "group", "lag", "largest_count", "lead", "learn", "least", "lit", "local", "max",
        "mechanism_from_json", "min", "month", "quarter", "rounded_sensitivity", "row_number", "smallest_scale",
        "time_bucket", "total", "truncated_poisson", "week", "when", "year",
    ]  # fmt: skip
    assert all(getattr(so, name) is not None for name in so.__all__)
    assert set(so.__all__) <= set(dir(so))


def test_aggregates_are_pinned() -> None:
    """They are registered one by one, in `query/aggregates/`."""
    aggregates = {
        "correlation", "count", "count_distinct", "covariance", "intercept", "mean", "median", "mode", "quantile",
        "r_squared", "slope", "stddev", "sum", "variance",
    }  # fmt: skip
    assert set(dir(so)) == {*so.__all__, *aggregates, "__version__"}
    assert all(callable(getattr(so, name)) for name in aggregates)


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(so, "laplace")


def test_import_is_light() -> None:
    heavy = {
        "numpy",
        "scipy",
        "scipy.stats",
        "pandas",
        "duckdb",
        "altair",
        "flint",
        "cryptography",
        "pyarrow",
        "sqlglot",
    }
    script = f"import sys, sordino; print(sorted({heavy!r} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


def test_reading_a_budget_needs_no_arrays_and_no_engine() -> None:
    """`sordino budget` must answer at once: adding up charges is plain fractions,
    and a cap costs ball arithmetic only.
    """
    heavy = {"numpy", "scipy", "cryptography", "sqlglot", "duckdb", "pyarrow"}
    script = (
        "import sys, sordino.ledger.ledger, sordino.query.declaration; from sordino.privacy.budget import Budget;"
        "from sordino.accounting.filters import TwoMeterFilter;"
        f"print(sorted({heavy | {'flint'}!r} & set(sys.modules)));"
        "assert TwoMeterFilter(Budget(1, 1e-6)).remaining.mu_squared > 0;"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split("\n") == ["[]", "[]", ""]


def test_releasing_needs_neither_scipy_nor_altair() -> None:
    script = (
        "import sys, sordino as so; so.Laplace(2).release([1]); so.Gaussian(2).release([1]);"
        "print(sorted({'scipy', 'pandas', 'altair'} & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


ALLOWED = {
    "__main__.py": {"cli"},
    "session.py": {
        "release", "bounds_release", "workloads", "ledger", "engines", "plan", "query", "answer", "accounting", "privacy",
        "errors",
    },
    "workloads": {
        "workloads", "release", "answer", "ledger", "engines", "plan", "query", "mechanisms", "accounting", "privacy",
        "errors",
    },
    "bounds_release.py": {"release", "answer", "ledger", "engines", "plan", "query", "mechanisms", "errors"},
    "release.py": {"answer", "ledger", "engines", "plan", "query", "mechanisms", "privacy", "errors"},
    "answer": {"answer", "ledger", "query", "mechanisms", "privacy", "errors"},
    "audit": {
        "audit", "local", "learn", "session", "workloads", "release",
        "engines", "plan", "query", "answer", "mechanisms", "accounting", "privacy", "errors",
    },
    "client": {"client", "server", "answer", "ledger", "query", "accounting", "privacy", "errors"},
    "cli": {
        "cli", "client", "server", "audit", "learn", "local", "adaptive", "session", "workloads", "release", "ledger",
        "engines", "plan", "query", "answer", "mechanisms", "accounting", "privacy", "errors",
    },
    "server": {
        "server", "audit", "session", "workloads", "release", "bounds_release", "ledger", "engines", "plan", "query",
        "answer", "mechanisms", "accounting", "privacy", "errors",
    },
    "learn": {"learn", "ledger", "mechanisms", "accounting", "privacy", "errors"},
    "ledger": {"ledger", "query", "accounting", "privacy", "errors"},
    "engines": {"engines", "plan", "query", "privacy", "errors"},
    "plan": {"plan", "query", "mechanisms", "accounting", "privacy", "errors"},
    "query": {"query", "mechanisms", "privacy", "errors"},
    "local": {"local", "engines", "mechanisms", "accounting", "privacy", "errors"},
    "adaptive": {"adaptive", "engines", "query", "mechanisms", "accounting", "privacy", "errors"},
    "accounting": {"accounting", "privacy", "errors"},
    "mechanisms": {"mechanisms", "privacy", "errors"},
    "privacy": {"privacy", "errors"},
    "errors.py": set[str](),
}  # fmt: skip
UPWARD = {("base.py", "sordino.accounting.total"), ("stub.py", "sordino.engines.duckdb.schema")}
"""The imports against the stream: `loss + loss` is spelled in privacy/ and made in accounting/, and an engine tells the
schema of its own files. `plan/dialects.py` looks the writers of engines up, by name."""


def test_rooms_import_only_downwards() -> None:
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        if room == "__init__.py":
            continue
        for node in nodes(path):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("sordino.") and (path.name, name) not in UPWARD:
                    assert name.split(".")[1] in ALLOWED[room], f"{path.name} imports {name}"


def test_no_insecure_randomness_in_the_package() -> None:
    """No random, secrets or numpy.random anywhere; the operating system is asked in bits.py only.

    One file gives these generators secret seeds, while others draw from them, and draws nothing itself.
    """
    seeding = {"seed", "get_state", "set_state", "getstate", "setstate"}
    for path in SOURCE.rglob("*.py"):
        if path.name == "secret_seeds.py":
            used = re.findall(r"\brandom\.(\w+)", path.read_text())
            assert set(used) <= seeding, path
            continue
        for node in nodes(path):
            if isinstance(node, ast.Import):
                assert not {a.name.split(".")[0] for a in node.names} & {"random", "secrets"}, path
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in {"random", "secrets"}, path
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"random", "default_rng", "Generator"}, path
                assert node.attr != "urandom" or path.name == "bits.py", path


def test_every_mechanism_has_its_proof_beside_it() -> None:
    folder = SOURCE / "mechanisms"
    for name in ("laplace", "gaussian", "randomized_response", "rounded", "key_selection", "exponential", "combination",
                 "noisy_max", "above_threshold", "interval_draw"):  # fmt: skip
        assert "Theorem" in (folder / f"{name}.md").read_text()
    for name in ("protocols", "heavy_hitters", "repeated", "shuffled"):
        assert "Theorem" in (SOURCE / "local" / f"{name}.md").read_text()
    for name in ("step", "correlated_noise", "gpu_noise", "stream"):
        assert "Theorem" in (SOURCE / "learn" / f"{name}.md").read_text()
    for name in ("holdout", "statistical_queries", "transfer"):
        assert "Theorem" in (SOURCE / "adaptive" / f"{name}.md").read_text()


def test_the_claims_of_queries_have_proofs() -> None:
    for name in ("plan/sensitivity", "query/aggregates/moments", "query/aggregates/quantiles"):
        assert "Theorem" in (SOURCE / f"{name}.md").read_text()


def test_proofs_name_code_that_exists() -> None:
    """A proof that speaks of code must speak of code that is there."""
    code = " ".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for path in SOURCE.rglob("*.md"):
        quoted = path.read_text().split("`")[1::2]
        for name in (q.strip("()") for q in quoted):
            if name.isidentifier():
                assert name in code, f"{path.name}: {name}"
