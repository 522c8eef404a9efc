"""The pages of a server's HTTP listener for operators: checks and metrics."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from nodewise_cli.commands.options import Call
from nodewise_cli.failures import CommandError
from nodewise_cli.service import checked_address

__all__ = ["Page", "Samples"]


@dataclass(frozen=True)
class Samples:
    """Values of one scrape, each with its metric's name and labels."""

    values: list[tuple[str, dict[str, str], float]]

    def total(self, name: str, **labels: str) -> float:
        """The sum over all samples of a metric that have these labels; 0 where there is none."""
        return sum(value for each, about, value in self.values if each == name and labels.items() <= about.items())

    def labels(self, name: str, label: str) -> list[str]:
        """The values of a label of a metric, in order."""
        return sorted({about[label] for each, about, _ in self.values if each == name and label in about})


class Page:
    """A server's pages, by HTTPS if the call states root certificates.

    Parameters
    ----------
    address : str
        HOST:PORT.
    call : Call
        How long to wait, and the files of TLS.
    """

    def __init__(self, address: str, call: Call) -> None:
        self._address, self._timeout_s, self._context = checked_address(address, "--http"), call.timeout_s, None
        if call.tls_ca or call.tls_cert:
            roots = None if call.tls_ca == "system" else call.tls_ca
            self._context = ssl.create_default_context(cafile=roots)
            if call.tls_cert:
                self._context.load_cert_chain(call.tls_cert, call.tls_key)

    def checks(self) -> dict[str, str]:
        """The checks of readiness by name, each "ok" or its fault. Raises CommandError."""
        checks: dict[str, str] = json.loads(self._text("/readyz?verbose")).get("checks", {})
        return checks

    def samples(self) -> Samples:
        """Its metrics. Raises CommandError."""
        # Only here: most commands need no metrics.
        from prometheus_client.parser import text_string_to_metric_families

        families = text_string_to_metric_families(self._text("/metrics"))
        return Samples([(each.name, each.labels, each.value) for family in families for each in family.samples])

    def _text(self, path: str) -> str:
        url = f"{'http' if self._context is None else 'https'}://{self._address}{path}"
        try:
            with urlopen(url, timeout=self._timeout_s, context=self._context) as reply:  # noqa: S310  # the scheme is ours
                return str(reply.read(), "utf-8")
        except HTTPError as error:
            if error.code == 503:  # not ready: the body names the faults
                return str(error.read(), "utf-8")
            raise CommandError(
                f"{url} answers {error.code}; check that --http names the HTTP address of a Nodewise server"
            ) from None
        except (URLError, OSError) as error:
            raise CommandError(
                f"{url} does not answer ({getattr(error, 'reason', error)}); check that the setting http is on",
                code="UNAVAILABLE",
            ) from None
