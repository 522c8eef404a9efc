"""Hold nodewise.v1 still: `buf breaking` against a committed image of the contract.

Images are committed under protos/released, since a shallow clone has no tags to compare with: one for each released
version, and before the first release one of the contract as it was settled. That one may be renewed, but only on
purpose: `--renew` puts its digest into the changelog beside the reason, and a check finds an image whose digest is not
there. Packages that are not stable (nodewise.v1beta1) are left out. Run under .venv, after tools/third_party_protos.py.
"""

import argparse
import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
RELEASED = ROOT / "protos" / "released"
SETTLED = RELEASED / "unreleased.binpb"
CHANGELOG = ROOT / "CHANGELOG.md"
UNRELEASED = "## [Unreleased]\n"
BUF = Path(sys.executable).parent / "buf"


def buf(*arguments: str) -> int:
    """Run buf on the contract and return its exit status."""
    return subprocess.run([str(BUF), *arguments], cwd=ROOT, check=False).returncode


def newest_image() -> Path | None:
    """Return the image of the newest released version, else that of the contract as it was settled."""
    released = [path for path in RELEASED.glob("*.binpb") if path != SETTLED]
    if released:
        return max(released, key=lambda path: Version(path.stem))
    return SETTLED if SETTLED.exists() else None


def digest_of(image: Path) -> str:
    """Return the short digest by which the changelog names an image."""
    return hashlib.sha256(image.read_bytes()).hexdigest()[:12]


def check() -> int:
    """Compare the contract with the newest image."""
    image = newest_image()
    if image is None:
        print("buf breaking: there is no image of nodewise.v1 yet, so it is free to change")
        return 0
    if image == SETTLED and digest_of(image) not in CHANGELOG.read_text(encoding="utf-8"):
        name = image.relative_to(ROOT)
        print(f"{name} was changed without a line in the changelog: renew it by --renew REASON", file=sys.stderr)
        return 1
    print(f"buf breaking: against {image.relative_to(ROOT)}")
    return buf("breaking", "protos", "--against", str(image))


def renew(reason: str) -> int:
    """Keep the contract as it is now as the settled one, and say why in the changelog; never after a release."""
    image = newest_image()
    if image not in (None, SETTLED):
        print("nodewise.v1 is released: what it holds may only be added to", file=sys.stderr)
        return 1
    RELEASED.mkdir(parents=True, exist_ok=True)
    if failed := buf("build", "protos", "--exclude-source-info", "--output", str(SETTLED)):
        return failed
    text = CHANGELOG.read_text(encoding="utf-8")
    line = f"- The contract was settled anew (image {digest_of(SETTLED)}): {reason.rstrip('.')}.\n"
    heading = f"{UNRELEASED}\n### Contract\n"
    if heading not in text:
        text = text.replace(UNRELEASED, heading, 1)
    CHANGELOG.write_text(text.replace(heading, heading + line, 1), encoding="utf-8")
    return 0


def write() -> int:
    """Keep the contract as the image of the version in pyproject.toml; never over an image that stands."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    image = RELEASED / f"{version}.binpb"
    if image.exists():
        print(f"{image.relative_to(ROOT)} is released already; raise the version first", file=sys.stderr)
        return 1
    if check():
        return 1
    RELEASED.mkdir(parents=True, exist_ok=True)
    return buf("build", "protos", "--exclude-source-info", "--output", str(image))


def main() -> None:
    """Check the contract, or with `--write` keep it as released, or with `--renew` as settled anew."""
    parser = argparse.ArgumentParser(description="Compare the contract with its newest image.")
    parser.add_argument("--write", action="store_true", help="write the image of the version that is being released")
    parser.add_argument("--renew", metavar="REASON", help="before the first release: keep the contract as it is now")
    arguments = parser.parse_args()
    if arguments.renew:
        raise SystemExit(renew(arguments.renew))
    raise SystemExit(write() if arguments.write else check())


if __name__ == "__main__":
    main()
