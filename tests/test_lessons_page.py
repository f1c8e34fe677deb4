"""Every lesson, run from JupyterLab's menu in a real browser: no error, in the cells or in the console."""

from __future__ import annotations

import lab as jupyter
import pytest
from playwright.sync_api import expect
from store_lessons import FOLDER

FIGURES = "import matplotlib.pyplot as plt\nprint('figures', len(plt.get_fignums()))"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_it_runs_without_an_error(pages: jupyter.Pages, name: str) -> None:
    page = pages.running.new_context(viewport={"width": 1400, "height": 1000}).new_page()
    heard = jupyter.listened(page)
    pages.lab.open(page, name)
    pages.lab.run(page)
    page.wait_for_timeout(500)
    assert page.locator(".jp-RenderedText[data-mime-type*='stderr'], .jp-mod-error").count() == 0
    assert page.get_by_text("Error displaying widget").count() == 0
    assert page.locator(".mv-alert:not([hidden])").all_inner_texts() == []
    assert page.locator(".mv").count() >= 1
    for view in page.locator(".mv:not(.mv-prediction)").all():
        view.scroll_into_view_if_needed()  # JupyterLab lays out what is near the screen alone
        expect(view.locator(".mv-says")).not_to_be_empty()
    code = """async (code) => {
      const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
      const run = kernel.requestExecute({ code });
      let said = '';
      run.onIOPub = (message) => { said += message.content.text ?? ''; };
      await run.done;
      return said;
    }"""
    assert page.evaluate(code, FIGURES) in ("figures 0\n", "figures 1\n")
    assert heard == []
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.context.close()
