"""Copy the .proto files of other projects that the contract imports into the ignored folder build/third_party.

They come from the installed wheel of googleapis-common-protos, so nothing of theirs is committed and buf needs no
network. Run under .venv.
"""

import shutil
from importlib.metadata import files
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "build" / "third_party"
DISTRIBUTION = "googleapis-common-protos"
WANTED = (
    "google/api/annotations.proto",
    "google/api/client.proto",
    "google/api/field_behavior.proto",
    "google/api/http.proto",
    "google/api/launch_stage.proto",
    "google/api/resource.proto",
    "google/rpc/code.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
)


def main() -> None:
    """Bring the copies up to date."""
    installed = {str(path): Path(str(path.locate())) for path in files(DISTRIBUTION) or ()}
    for name in WANTED:
        target = TARGET / name
        text = installed[name].read_bytes()
        if not target.is_file() or target.read_bytes() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(installed[name], target)


if __name__ == "__main__":
    main()
