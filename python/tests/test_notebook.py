"""The notebooks run from top to bottom."""

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NAMES = ["nodecast", "from-a-dump"]


def read(name):
    return nbformat.read(ROOT / "docs" / f"{name}.ipynb", as_version=4)


@pytest.fixture(scope="module", params=NAMES)
def executed(request):
    notebook = read(request.param)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    return request.param, notebook


def outputs(notebook, kind):
    """Outputs of the cells in one form, in order."""
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.data[kind] for output in shown if kind in output.get("data", {})]


def test_notebook_ends_with_plot_and_texts(executed):
    name, notebook = executed
    text = "".join(output.text for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output)
    wanted = {"nodecast": ["Policy after-1m", "did you mean"], "from-a-dump": ["cost_per_month: ", "evictions: "]}
    assert all(words in text for words in wanted[name]), text
    assert len(outputs(notebook, "image/png")) == 1
    pages = outputs(notebook, "text/html")
    assert len(pages) >= 2 and any("<th>Cost</th>" in page for page in pages)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_stored_without_outputs(name):
    assert all(not cell.outputs and cell.execution_count is None for cell in read(name).cells if cell.cell_type == "code")
