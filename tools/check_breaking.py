"""Hold the contract still after its first release: `buf breaking` against the image of the last released version.

Images are committed under protos/released, one for each released version: a shallow clone has no tags to compare with.
Run under .venv, after tools/third_party_protos.py.
"""

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
RELEASED = ROOT / "protos" / "released"
BUF = Path(sys.executable).parent / "buf"


def buf(*arguments: str) -> int:
    """Run buf on the contract and return its exit status."""
    return subprocess.run([str(BUF), *arguments], cwd=ROOT, check=False).returncode


def newest_image() -> Path | None:
    """Return the image of the newest released version, or nothing before the first release."""
    return max(RELEASED.glob("*.binpb"), key=lambda path: Version(path.stem), default=None)


def check() -> int:
    """Compare the contract with the last released one."""
    image = newest_image()
    if image is None:
        print("buf breaking: nodewise.v1 has no released version yet, so it is free to change")
        return 0
    print(f"buf breaking: against {image.relative_to(ROOT)}")
    return buf("breaking", "protos", "--against", str(image))


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
    """Check the contract, or with `--write` keep it as released."""
    parser = argparse.ArgumentParser(description="Compare the contract with its last released version.")
    parser.add_argument("--write", action="store_true", help="write the image of the version that is being released")
    raise SystemExit(write() if parser.parse_args().write else check())


if __name__ == "__main__":
    main()
