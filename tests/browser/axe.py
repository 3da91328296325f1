"""Accessibility of a page by axe-core. AXE is the path of axe.min.js, which `.ci/run` installs."""

import os
import pathlib

# Rules of WCAG 2.2 A and AA, and best practices: all that axe-core runs unless told otherwise.
RUN = """const done = arguments[0];
    axe.run(document, {resultTypes: ['violations']}).then(
        result => done(result.violations.map(rule => `${rule.id}: ${rule.nodes.length} times, first ${rule.nodes[0].html.slice(0, 200)}`)),
        error => done([String(error)]))"""


def violations(browser):
    """The rules that the page as it is shown now breaks, each with an element."""
    browser.run(pathlib.Path(os.environ["AXE"]).read_text())
    return browser.call("POST", f"{browser.session}/execute/async", {"script": RUN, "args": []})
