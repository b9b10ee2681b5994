"""A row to start from, for tests that need rows and not what is in them."""

from bench.results.columns import Case, Ceiling, Conditions, Environment, Facts, Row

CASE = Case("sdpa", "fwd", "causal+window:256", 1, 8, 2, 1024, 1024, 64, "float32", "cpu")
FACTS = Facts(
    status="ok",
    samples_ms=(1.25, 1.5, 1.125),
    calls_per_sample=3,
    plan_ms=0.5,
    first_call_ms=20.0,
    check_ms=40.0,
    plan_bytes=2**20,
    result_bytes=2**21,
    peak_bytes=2**24,
    peak_rss_bytes=2**25,
    memory_source="profiler events, /proc",
    error=1e-7,
    error_budget=1e-6,
    kernel="flash",
    conditions=Conditions((10.5, 10.0, 11.0), load=1.5, steal=0.01, involuntary_switches=7),
)
ENVIRONMENT = Environment(
    device_name="a made-up CPU",
    threads=2,
    matmul_precision="highest",
    tf32=False,
    reduced_precision="float16 bfloat16",
    allocator="glibc 2.36",
    python="3.11.7",
    torch="2.13.0+cpu",
    cuda="",
    driver="",
    xformers="0.0.35",
    triton="",
    commit="abc1234",
    method="2",
)
CEILING = Ceiling(ceiling_tflops=100.0, copy_gb_s=20.0)
ROW = Row(
    CASE,
    FACTS,
    ENVIRONMENT,
    run="20261129-120000",
    visit=1,
    started="2026-11-29T12:00:00+00:00",
    visit_s=1.25,
    exact=True,
    ceiling=CEILING,
)
