"""Shows in the test output which check caught which mutant, and by what words."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("passed")
    lines = [value for report in reports for name, value in report.user_properties if name == "mutant"]
    if lines:
        terminalreporter.section(f"{len(lines)} mutants, caught by the check that names the mistake")
        for line in lines:
            terminalreporter.write_line(str(line)[:140])
