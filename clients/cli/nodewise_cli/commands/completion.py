"""`nodewise completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from typer import Argument
from typer.completion import get_completion_script  # type: ignore[attr-defined]  # typer has it under no other name

from nodewise_cli.console import print_line

__all__ = ["completion"]


class _Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[_Shell, Argument(metavar="bash|zsh|fish", help="Shell of the script.")]) -> None:
    """Print the script that completes commands, options and their values in a shell.

    bash: eval "$(nodewise completion bash)" in ~/.bashrc. zsh: eval "$(nodewise completion zsh)" in ~/.zshrc, after
    compinit. fish: nodewise completion fish > ~/.config/fish/completions/nodewise.fish
    """
    print_line(get_completion_script(prog_name="nodewise", complete_var="_NODEWISE_COMPLETE", shell=shell))
