"""Configuration files of public projects are read, or refused with the field that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from public_files import FILES, PublicFile

from nodewise_client import Transformer, Workload
from nodewise_client.frameworks import Layout, LayoutFileError, StatedLayout, read_layout


def layout_of(file: PublicFile, stated: StatedLayout, **given: int) -> Layout:
    model = Workload(
        transformer=Transformer(layers_count=file.layers, hidden_size=4096, attention_heads_count=32), precision="bf16"
    )
    return stated.layout(stated.workload(model), file.nodes, file.devices_per_node, **given)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.project}:{file.path}")
def test_a_public_file_is_read_or_refused(tmp_path: Path, file: PublicFile) -> None:
    path = tmp_path / Path(file.path).name
    path.write_text(file.text)
    if file.refused or file.without:
        with pytest.raises(LayoutFileError) as error:
            layout_of(file, read_layout(path))
        assert f"{path}: {file.refused or file.without}" in str(error.value)
    if file.refused:
        return
    stated = read_layout(path)
    layout = layout_of(file, stated, **file.given)
    assert {name: getattr(layout, name) for name in file.layout} == file.layout
    workload = stated.workload(Workload())
    assert {name: getattr(workload, name) for name in file.facts} == file.facts
    if "offload" not in file.facts:
        assert "offload" not in stated.facts


def test_the_files_are_of_thirty_projects() -> None:
    assert len({file.project for file in FILES}) >= 30
