"""A row to start from, for tests that need rows and not what is in them."""

from bench.results.columns import Case, Environment, Facts, Row

CASE = Case("sdpa", "fwd", "causal+window:256", 1, 8, 2, 1024, 1024, 64, "float32", "cpu")
FACTS = Facts(
    status="ok",
    samples_ms=(1.25, 1.5, 1.125),
    calls_per_sample=3,
    plan_ms=0.5,
    first_call_ms=20.0,
    plan_bytes=2**20,
    peak_bytes=2**24,
    error=1e-7,
    error_budget=1e-6,
    kernel="flash",
)
ENVIRONMENT = Environment("a made-up CPU", 2, "3.11.7", "2.13.0+cpu", "", "", "0.0.35", "", "abc1234", "1")
ROW = Row(CASE, FACTS, ENVIRONMENT, run="20261129-120000", visit=1, started="2026-11-29T12:00:00+00:00", exact=True)
