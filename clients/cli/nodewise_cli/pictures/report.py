from pathlib import Path
from nodewise_cli.comparison import Comparison
from nodewise_client import DiagnosisAnswer

__all__ = ["write_comparison", "write_report"]


def write_report(path: Path, result: DiagnosisAnswer) -> None: ...
def write_comparison(path: Path, found: Comparison) -> None: ...
