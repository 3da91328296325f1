"""The notebooks run from top to bottom, with the outputs that are stored in them.

NODECAST_UPDATE_NOTEBOOKS=1 stores the outputs of this run.
"""

import os
import tempfile
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NAMES = ["nodecast", "from-a-dump"]
UPDATE = "NODECAST_UPDATE_NOTEBOOKS"
# Code hosts show larger notebooks slowly or not at all.
BYTES_MAX = 300_000


def path(name):
    return ROOT / "docs" / f"{name}.ipynb"


def read(name):
    return nbformat.read(path(name), as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def strip(notebook):
    """Removes what differs from run to run or from machine to machine: times of execution, and the release of Python."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["language_info"] = {"name": "python"}


@pytest.fixture(scope="module", params=NAMES)
def executed(request):
    name = request.param
    notebook = read(name)
    nbformat.validate(notebook)
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True, resources={"metadata": {"path": str(ROOT)}})
    client.execute()
    strip(notebook)
    if os.environ.get(UPDATE):
        nbformat.write(notebook, path(name))
    return name, notebook


def outputs(notebook, kind):
    """Outputs of the cells in one form, in order."""
    shown = [output for cell in code_cells(notebook) for output in cell.outputs]
    return [output.data[kind] for output in shown if kind in output.get("data", {})]


def comparable(cell):
    """The outputs of a cell; of an image only its form, because its bytes depend on the fonts of the machine."""
    forms = []
    for output in cell.outputs:
        data = {kind: None if kind.startswith("image/") else value for kind, value in output.get("data", {}).items()}
        forms.append((output.output_type, output.get("text"), data))
    return forms


def test_notebook_ends_with_plot_and_texts(executed):
    name, notebook = executed
    text = "".join(output.text for cell in code_cells(notebook) for output in cell.outputs if "text" in output)
    wanted = {"nodecast": ["Policy after-1m", "did you mean"], "from-a-dump": ["cost_per_month: ", "evictions: "]}
    assert all(words in text for words in wanted[name]), text
    assert len(outputs(notebook, "image/png")) == 1
    pages = outputs(notebook, "text/html")
    assert len(pages) >= 2 and any("<th>Cost</th>" in page for page in pages)


def test_stored_outputs_are_those_of_a_run(executed):
    name, notebook = executed
    for stored, made in zip(code_cells(read(name)), code_cells(notebook)):
        assert comparable(stored) == comparable(made), f"{name}, cell {made.id}: {UPDATE}=1 stores the new outputs"
        assert stored.execution_count == made.execution_count


@pytest.mark.parametrize("name", NAMES)
def test_stored_notebook_is_small_and_portable(name):
    notebook = read(name)
    assert path(name).stat().st_size < BYTES_MAX
    texts = [str(part) for cell in notebook.cells for part in (cell.source, comparable(cell) if "outputs" in cell else "")]
    for place in (str(ROOT), tempfile.gettempdir(), str(Path.home())):
        assert not any(place in text for text in texts), f"{name} has {place}, a path of this machine"
    strip(notebook)
    assert notebook == read(name), f"times of execution, or the release of Python: {UPDATE}=1 stores the notebook without"
