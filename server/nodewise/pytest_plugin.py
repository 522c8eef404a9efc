"""The conformance suite in pytest: ``pytest --nodewise-conformance NAME`` checks an installed plugin, without a test.

Pytest loads this module wherever Nodewise is installed, so it imports the suite only when the option is stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nodewise.conformance.cases import Case
    from nodewise.conformance.evidence import Evidence

__all__ = ["Hooks"]

OPTION = "--nodewise-conformance"


class Hooks:
    """Hooks for a project's ``conftest.py``."""

    @pytest.hookspec
    def pytest_nodewise_evidence(self) -> Evidence:
        """Evidence to check plugins with besides the suite's own: jobs, clusters, files, recordings."""
        raise NotImplementedError


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the suite's own hook."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs the suite."""
    text = "check an installed plugin of Nodewise: an entry point, a distribution or a record; may be repeated"
    parser.getgroup("nodewise").addoption(OPTION, metavar="NAME", action="append", default=[], help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Collect nothing else if the option names plugins and there are no paths."""
    if config.getoption(OPTION) and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []


def pytest_collection(session: pytest.Session) -> None:
    """Register the requested cases, since collecting may replace the session's items."""
    names = session.config.getoption(OPTION)
    if names:
        session.config.pluginmanager.register(_Collecting(session, names), "nodewise-conformance-cases")


class _Collecting:
    """Adds the cases of the requested plugins."""

    def __init__(self, session: pytest.Session, names: list[str]) -> None:
        self._session = session
        self._names = names

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        from nodewise.conformance.cases import installed_cases  # noqa: PLC0415  # only if the option is stated
        from nodewise.conformance.evidence import Evidence  # noqa: PLC0415

        own = Evidence.merge(session.config.hook.pytest_nodewise_evidence())
        try:
            cases = installed_cases(self._names, own)
        except LookupError as error:
            raise pytest.UsageError(str(error.args[0])) from None
        suite = _Suite.from_parent(session, name="nodewise", nodeid="nodewise")
        items[:0] = suite.of(cases)


class _Suite(pytest.Collector):
    """All cases."""

    def of(self, cases: list[Case]) -> Iterator[pytest.Item]:
        """One item for each case."""
        for case in cases:
            yield _Item.from_parent(self, name=str(case), case=case)

    def collect(self) -> list[pytest.Item]:
        """Collect nothing: ``of`` makes the items."""
        return []


class _Item(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self._case = case

    def runtest(self) -> None:
        """Run the check."""
        self._case.run()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of a failure to conform; a traceback only for exceptions that the suite does not expect."""
        from nodewise.conformance.findings import NonConformanceError  # noqa: PLC0415  # as above

        return (
            str(excinfo.value)
            if isinstance(excinfo.value, NonConformanceError)
            else super().repr_failure(excinfo, style)
        )

    def reportinfo(self) -> tuple[str, None, str]:
        """The location in reports."""
        return "nodewise", None, str(self._case)
