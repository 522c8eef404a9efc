"""Write the options of other languages into every .proto file, from the owner's names, or check them."""

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
OWNER = PROTOS / "owner.toml"
OPTIONS = re.compile(r'^option (?:go_package|java_\w+) = (?:"[^"]*"|\w+);\n', re.MULTILINE)
BLANK_LINES = re.compile(r"\n{3,}")
# Options stand after the package and the imports.
HEAD = re.compile(r"^(?:package|import) [^;]+;\n", re.MULTILINE)


def with_options(text: str, source: Path, owner: dict[str, str]) -> str:
    """Return the file with the options that its place and the owner's names imply."""
    folder = source.parent.relative_to(PROTOS)
    package = folder.as_posix().replace("/", "")
    outer = "".join(word.capitalize() for word in source.stem.split("_")) + "Proto"
    options = {
        "go_package": f'"{owner["go_module"]}/gen/{folder.as_posix()};{package}"',
        "java_multiple_files": "true",
        "java_outer_classname": f'"{outer}"',
        "java_package": f'"{".".join((owner["java_package"], *folder.parts[1:]))}"',
    }
    bare = OPTIONS.sub("", text)
    end = max(found.end() for found in HEAD.finditer(bare))
    lines = "".join(f"option {name} = {value};\n" for name, value in options.items())
    return BLANK_LINES.sub("\n\n", f"{bare[:end]}\n{lines}\n{bare[end:]}")


def main() -> None:
    """Write the options, or with `--check` name the files that lack them."""
    parser = argparse.ArgumentParser(description="Options of other languages in the contract's files.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that differ")
    arguments = parser.parse_args()
    owner = tomllib.loads(OWNER.read_text(encoding="utf-8"))
    different = []
    for source in sorted((PROTOS / "nodewise").rglob("*.proto")):
        text = source.read_text(encoding="utf-8")
        right = with_options(text, source, owner)
        if right != text:
            different.append(source.relative_to(ROOT))
            if not arguments.check:
                source.write_text(right, encoding="utf-8")
    for path in different:
        print(f"{path}: options are not those of {OWNER.relative_to(ROOT)} (run `make stubs`)")
    raise SystemExit(1 if different and arguments.check else 0)


if __name__ == "__main__":
    main()
