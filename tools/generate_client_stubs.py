"""Generate the committed stubs of the clients in other languages, or check that they are what the generators give.

`buf.gen.yaml` has the plugins; LANGUAGES what each needs, what is generated, and where the one service config is
copied to for clients that carry it inside. A language whose toolchain is not there is left out, and named. Runs under
.venv, which holds buf, after tools/third_party_protos.py.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodewise_conformance.programs import why_not

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "buf.gen.yaml"
SERVICE_CONFIG = ROOT / "protos" / "nodewise" / "v1" / "nodewise_grpc_service_config.json"
BUF = Path(sys.executable).parent / "buf"
PLUGIN = re.compile(r"^  - .*\n(?:^    .*\n)*", re.MULTILINE)


def run(*command: str | Path) -> None:
    """Run one command in the repository's root and stop with its exit status if it fails."""
    finished = subprocess.run([str(part) for part in command], cwd=ROOT, check=False)
    if finished.returncode:
        raise SystemExit(finished.returncode)


def generate_by_buf(language: str, target: Path) -> None:
    """Run the plugins of one language, with `target` in the place of the repository's root."""
    head, _, plugins = TEMPLATE.read_text(encoding="utf-8").partition("\nplugins:\n")
    chosen = [entry for entry in PLUGIN.findall(plugins) if f"out: clients/{language}/" in entry]
    if not chosen:
        raise SystemExit(f"{TEMPLATE.name} has no plugin whose `out` lies under clients/{language}")
    template = target / TEMPLATE.name
    template.write_text(f"{head}\nplugins:\n{''.join(chosen)}", encoding="utf-8")
    run(BUF, "generate", "--template", template, "--output", target)


def generate_typescript(language: str, target: Path) -> None:
    """The contract, the details of errors (no package has them), and the service config as a module for browsers."""
    generate_by_buf(language, target)
    template = target / TEMPLATE.name
    details = [
        part
        for name in ("error_details", "status")
        for part in ("--path", f"build/third_party/google/rpc/{name}.proto")
    ]
    run(BUF, "generate", ".", *details, "--template", template, "--output", target)
    config = SERVICE_CONFIG.read_text(encoding="utf-8").strip()
    (target / "clients" / language / "src" / "gen" / "service_config.ts").write_text(
        f"// {SERVICE_CONFIG.relative_to(ROOT).as_posix()}, as it is there.\n"
        f"export const serviceConfig = {config} as const;\n",
        encoding="utf-8",
    )


def generate_rust(language: str, target: Path) -> None:
    """Run the generator that is part of the Rust client, with `target` in the place of the repository's root."""
    image = target / "contract.binpb"
    # Clients call the service; nodewise.plugin is between the service and its plugins.
    run(BUF, "build", "--as-file-descriptor-set", "--exclude-path", "protos/nodewise/plugin", "--output", image)
    manifest = ROOT / "clients" / language / "Cargo.toml"
    generator: list[str | Path] = ["--manifest-path", manifest, "--package", "nodewise-client-generate"]
    run("cargo", "run", "--quiet", *generator, "--", image, target / "clients" / language)


@dataclass(frozen=True)
class Language:
    """What the client of one language has generated. Paths are relative to the repository's root."""

    name: str  # its folder under clients
    needs: str  # a program that runs, or a file that the client's own set-up makes (then with a slash)
    generated: Sequence[str]  # folders that hold nothing but what is generated
    service_config: str | None = None  # where a copy of the service config goes
    generate: Callable[[str, Path], None] = generate_by_buf  # (name, folder that stands for the root)

    def ready(self) -> bool:
        """Return whether the toolchain runs."""
        return (
            (ROOT / self.needs).exists() if "/" in self.needs else not why_not(self.needs, ROOT / "clients" / self.name)
        )


LANGUAGES = (
    Language(
        name="go",
        needs="go",
        generated=["clients/go/gen"],
        service_config="clients/go/nodewise_grpc_service_config.json",
    ),
    Language(
        name="typescript",
        needs="clients/typescript/node_modules/.bin/protoc-gen-es",
        generated=["clients/typescript/src/gen"],
        generate=generate_typescript,
    ),
    Language(
        name="rust",
        needs="cargo",
        generated=["clients/rust/src/gen", "clients/rust/conformance/gen"],
        service_config="clients/rust/src/nodewise_grpc_service_config.json",
        generate=generate_rust,
    ),
)


def files_under(root: Path, folders: Sequence[str]) -> dict[str, bytes]:
    """Return the files of some folders by their names relative to a root."""
    found = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def compare(language: Language, *, only_config: bool) -> dict[str, bytes | None]:
    """Return what differs from what is committed: the right content by name, None for what must not be there."""
    different: dict[str, bytes | None] = {}
    if language.service_config is not None:
        copy, right = ROOT / language.service_config, SERVICE_CONFIG.read_bytes()
        if not copy.is_file() or copy.read_bytes() != right:
            different[language.service_config] = right
    if only_config:
        return different
    with tempfile.TemporaryDirectory() as folder:
        language.generate(language.name, Path(folder))
        fresh = files_under(Path(folder), language.generated)
    present = files_under(ROOT, language.generated)
    for name in fresh.keys() | present.keys():
        if fresh.get(name) != present.get(name):
            different[name] = fresh.get(name)
    return different


def main() -> None:
    """Write the stubs, or with `--check` name those that differ."""
    parser = argparse.ArgumentParser(description="Generate the committed stubs of clients in other languages.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that differ")
    parser.add_argument("languages", nargs="*", help="only these (default: all)")
    arguments = parser.parse_args()
    known = {language.name: language for language in LANGUAGES}
    if unknown := sorted(set(arguments.languages) - known.keys()):
        raise SystemExit(f"unknown languages: {', '.join(unknown)}; there are: {', '.join(known)}")
    failed = False
    for language in (known[name] for name in arguments.languages or known):
        ready = language.ready()
        if not ready:
            print(f"stubs of clients/{language.name} are left out: there is no {language.needs} here")
        for name, content in sorted(compare(language, only_config=not ready).items()):
            if arguments.check:
                failed = True
                print(f"not what the contract generates (run `make stubs`): {name}")
            elif content is None:
                (ROOT / name).unlink()
                print(f"removed {name}")
            else:
                (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
                (ROOT / name).write_bytes(content)
                print(f"wrote {name}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
