"""The notebook runs from top to bottom."""

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NOTEBOOK = ROOT / "docs" / "nodecast.ipynb"


@pytest.fixture(scope="module")
def executed():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    return notebook


def outputs(notebook, kind):
    """What the cells show in one form, in order."""
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.data[kind] for output in shown if kind in output.get("data", {})]


def test_it_goes_from_a_question_to_a_plot(executed):
    text = "".join(output.text for cell in executed.cells for output in cell.get("outputs", []) if "text" in output)
    assert "policy after-1m" in text and "did you mean" in text
    assert len(outputs(executed, "image/png")) == 1
    assert len(outputs(executed, "text/html")) >= 2


def test_it_is_kept_without_what_it_shows():
    kept = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs and cell.execution_count is None for cell in kept.cells if cell.cell_type == "code")
