"""`nodewise schema`: the JSON Schema of a specification, for editors and checks."""

from __future__ import annotations

import json
from typing import Annotated

from typer import Argument

from nodewise_cli.console import print_line
from nodewise_cli.schemas import Specification, schema_of

__all__ = ["schema"]


def schema(
    specification: Annotated[Specification, Argument(metavar="|".join(Specification), help="Command that reads it.")],
) -> None:
    """Print the JSON Schema (2020-12) of a specification: of what a command reads, or of a profile.

    An editor completes and checks a file whose settings name this schema.
    """
    print_line(json.dumps(schema_of(specification), indent=2, ensure_ascii=False))
