"""Subjects of commits: imperative, at most 72 characters, no full stop; the reason in the body, after an empty line.

    tools/check_commits.py                    commits since FIRST; part of `make lint`
    tools/check_commits.py --message FILE     one message, as Git's hook `commit-msg` calls it

Install the hook with `git config core.hooksPath tools/hooks`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

FIRST: Final = "975bf1bef8441736c9e31f3e144eaf0004cfeb8b"
"""The last commit that is not checked."""
LONGEST: Final = 72
GENERATED: Final = re.compile(r"(Merge|Revert|fixup!|squash!) ?")
NOT_IMPERATIVE: Final = re.compile(
    r"(?!(?:Bring|String|Embed|Feed|Need|Seed|Shed|Speed|Exceed|Proceed|Focus)\b)[A-Za-z]+(?:ed|ing|[^s]s)\b"
)
"""First words such as Added, Adding, Adds."""


def problems_of(message: str) -> list[str]:
    """What is wrong with a commit's message; comments of Git's editor are left out."""
    lines = [line.rstrip() for line in message.splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        lines.pop(0)
    if not lines:
        return ["the message is empty"]
    subject = lines[0]
    if GENERATED.match(subject):
        return []
    problems = []
    if len(subject) > LONGEST:
        problems.append(f"the subject has {len(subject)} characters, at most {LONGEST} are allowed")
    if not subject[0].isupper():
        problems.append("the subject must begin with a capital letter")
    if subject.endswith("."):
        problems.append("the subject must not end with a full stop")
    if NOT_IMPERATIVE.match(subject):
        problems.append(f"the subject must be imperative ('Add', not 'Added' or 'Adds'), found {subject.split()[0]!r}")
    if len(lines) > 1 and lines[1]:
        problems.append("the second line must be empty")
    return problems


def main() -> int:
    """Print what is wrong; the exit status is 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--message", type=Path, metavar="FILE", help="check this message alone")
    arguments = parser.parse_args()
    if arguments.message is not None:
        messages = {"this commit": arguments.message.read_text(encoding="utf-8")}
    else:
        messages = messages_since(FIRST)
    problems = [f"{name}: {problem}" for name, message in messages.items() for problem in problems_of(message)]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


def messages_since(first: str) -> dict[str, str]:
    """Messages of the commits after one, by their short names; empty where the history does not reach back to it."""
    asked = ["git", "log", "--format=%h%x00%B%x01", f"{first}..HEAD"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"check_commits: this clone does not hold {first}: commits are not checked", file=sys.stderr)
        return {}
    entries = (entry.strip("\n").partition("\0") for entry in done.stdout.split("\1") if entry.strip("\n"))
    return {name: message for name, _, message in entries}


if __name__ == "__main__":
    sys.exit(main())
