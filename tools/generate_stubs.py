"""Generate the committed Python stubs and values of the contract, or check that they are what the generator gives.

Runs under .venv-tools (requirements/tools.txt pins the generator). The contract's package is `nodewise.v1`, but the
server's Python package is `nodewise` too, so the stubs live in `nodewise_protos.v1`: the imports between generated
modules are rewritten, the descriptors keep the contract's file names.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc_tools

from generate_values import generated_values

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
PYTHON = PROTOS / "python"
THIRD_PARTY = ROOT / "build" / "third_party"
GENERATED = (
    "nodewise_protos/**/*_pb2.py",
    "nodewise_protos/**/*_pb2.pyi",
    "nodewise_protos/**/*_pb2_grpc.py",
    "nodewise_protos/**/*_pb2_grpc.pyi",
    "nodewise_protos/**/__init__.py",
    "nodewise_values/v*/*.py",
    "nodewise_values/__init__.py",
    "nodewise_values/facts.py",
)
PACKAGE = "nodewise_protos"

# `from nodewise.v1 import x_pb2 as y` and `import nodewise.v1.x_pb2`, and how stubs name what they imported that way.
IMPORT_FROM = re.compile(r"^(from )nodewise((?:\.plugin)?\.v\d\w* import )", re.MULTILINE)
DOTTED = re.compile(r"(?<![\w./\"'])nodewise((?:\.plugin)?\.v\d\w*\.\w+_pb2)\b")
# A file without a service gets no _pb2_grpc module: it would hold nothing but a version check.
SERVICE = re.compile(r"^service ", re.MULTILINE)

_DOES = "Messages and gRPC stubs"
INITS = {
    f"{PACKAGE}/__init__.py": '"""Generated messages and gRPC stubs of the Nodewise contract."""\n',
    f"{PACKAGE}/plugin/__init__.py": f'"""{_DOES} that plugins in other processes speak."""\n',
    **{
        f"{PACKAGE}/{name.replace('.', '/')}/__init__.py": f'"""{_DOES} of nodewise.{name}, two modules a file."""\n'
        for name in ("v1", "v1beta1", "plugin.v1")
    },
}


def generate(target: Path) -> None:
    """Write fresh stubs and values of every .proto file of the contract into a folder."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in (PROTOS / "nodewise").rglob("*.proto"))
    if not sources:
        raise SystemExit(f"no .proto files under {PROTOS / 'nodewise'}")
    plugin = Path(sys.executable).parent / "protoc-gen-mypy_grpc"
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    includes = [f"-I{folder}" for folder in (PROTOS, THIRD_PARTY, well_known)]
    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python", "mypy_grpc")]
    descriptors = target / "descriptors.binpb"
    outputs += [f"--descriptor_set_out={descriptors}", "--include_imports", "--include_source_info"]
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        *includes,
        *outputs,
        f"--plugin=protoc-gen-mypy_grpc={plugin}",
    ]
    finished = subprocess.run([*command, *sources], cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
    messages = [line for line in finished.stderr.splitlines() if not line.startswith("Writing mypy to ")]
    print("\n".join(messages), end="\n" if messages else "", file=sys.stderr)
    if finished.returncode:
        raise SystemExit(finished.returncode)
    for source in sources:
        if not SERVICE.search((PROTOS / source).read_text(encoding="utf-8")):
            for suffix in (".py", ".pyi"):
                (target / source.replace(".proto", f"_pb2_grpc{suffix}")).unlink()
    (target / "nodewise").rename(target / PACKAGE)
    for path in target.rglob("*.py*"):
        text = path.read_text(encoding="utf-8")
        text = DOTTED.sub(rf"{PACKAGE}\1", IMPORT_FROM.sub(rf"\1{PACKAGE}\2", text))
        path.write_text(text, encoding="utf-8")
    for name, text in {**INITS, **generated_values(descriptors.read_bytes())}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


def generated_files(folder: Path) -> dict[str, bytes]:
    """Return the generated files under a folder by their relative names."""
    found = {path for pattern in GENERATED for path in folder.glob(pattern)}
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def main() -> None:
    """Write the stubs, or with `--check` name those that differ."""
    parser = argparse.ArgumentParser(description="Generate the Python stubs of the contract.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that differ")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        fresh = generated_files(Path(folder))
    present = generated_files(PYTHON)
    different = sorted(name for name in fresh.keys() | present.keys() if fresh.get(name) != present.get(name))
    if arguments.check:
        for name in different:
            print(f"not what the contract generates (run `make stubs`): {(PYTHON / name).relative_to(ROOT)}")
        raise SystemExit(1 if different else 0)
    for name in different:
        path = PYTHON / name
        if name in fresh:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(fresh[name])
            print(f"wrote {path.relative_to(ROOT)}")
        else:
            path.unlink()
            print(f"removed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
