"""Opens reports in headless Chromium, as a reader would: from the disk, without a network.

    python3 tests/browser/test_report.py DIRECTORY...

A directory holds report.html and summary.json, or comparison.html and comparison.json. Needs chromium and chromedriver; of Python only the standard library.
The browser is driven by WebDriver, which is JSON over HTTP.
"""

import json
import pathlib
import re
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

DIRECTORIES = [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]
COMPARISONS = [directory for directory in DIRECTORIES if (directory / "comparison.html").exists()]
REPORTS = [directory for directory in DIRECTORIES if directory not in COMPARISONS]
WIDTHS = {"desktop": 1280, "phone": 375, "small phone": 360}
# Boxes of drawings that have to be moved sideways to be seen whole, and drawings wider than the page.
HIDDEN = """return [...document.querySelectorAll('figure, figure .scroll, figure svg')].filter(e =>
    e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"""


class Browser:
    """A headless Chromium behind chromedriver."""

    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = f"http://127.0.0.1:{port}"
        self.await_driver()
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{answer['sessionId']}"

    def await_driver(self):
        for _ in range(200):
            try:
                if self.call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def open(self, path, width):
        # A window of Chromium cannot be narrower than 500 pixels; a phone is imitated.
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        command = {"cmd": "Emulation.setDeviceMetricsOverride", "params": size}
        self.call("POST", f"{self.session}/goog/cdp/execute", command)
        self.call("POST", f"{self.session}/url", {"url": path.as_uri()})
        self.settle()

    def run(self, script, *arguments):
        """What `script`, the body of a function, returns in the page."""
        return self.call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def settle(self):
        """Waits until the page has drawn what it was told to."""
        script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(true)));"
        self.call("POST", f"{self.session}/execute/async", {"script": script, "args": []})

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).click()", selector)
        self.settle()

    def press(self, selector, key):
        self.run(
            "document.querySelector(arguments[0]).dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1], bubbles: true}))",
            selector,
            key,
        )
        self.settle()

    def drag(self, selector, start, end):
        """Presses the mouse within an element, moves it and lets go; shares of the element's width."""
        box = self.run("const b = document.querySelector(arguments[0]); b.scrollIntoView({block: 'center'});"
                       "const r = b.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]", selector)
        at = lambda share: {"type": "pointerMove", "duration": 50, "x": round(box[0] + share * box[2]), "y": round(box[1] + box[3] / 2)}
        moves = [at(start), {"type": "pointerDown", "button": 0}, at((start + end) / 2), at(end), {"type": "pointerUp", "button": 0}]
        pointer = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self.call("POST", f"{self.session}/actions", {"actions": [pointer]})
        self.settle()

    def complaints(self):
        """Errors and warnings of the console since the last call."""
        log = self.call("POST", f"{self.session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(10)


def lookup(summary, key):
    """The figure that `pods.wait_for_node.p99_seconds` names."""
    for part in key.split("."):
        summary = summary[part]
    return summary


def read(text):
    """The number that a text for people states: `$1,234.50`, `12.3 %`, `1m 05s`, `250 ms`."""
    text = text.replace("\u00a0", " ")
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
    if re.fullmatch(r"(\d+(\.\d+)? ?(d|h|ms|m|s) ?)+", text):
        return sum(float(number) * units[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?) ?(ms|d|h|m|s)", text))
    share = text.endswith("%")
    number = float(re.sub(r"[^0-9.\-]", "", text))
    return number / 100 if share else number


class Report(unittest.TestCase):
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def pages(self, width="desktop"):
        for directory in REPORTS:
            with self.subTest(report=directory.name, width=width):
                self.browser.open(directory / "report.html", WIDTHS[width])
                yield directory
                self.assertEqual(self.browser.complaints(), [])

    def window(self):
        return self.browser.run("return document.querySelector('#player .window').textContent")

    def test_opens_without_complaint_and_fits_every_width(self):
        for width, pixels in WIDTHS.items():
            for _ in self.pages(width):
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), pixels)
                self.assertEqual(self.browser.run(HIDDEN), 0)
                # The first screen answers; on a phone it scrolls.
                self.assertGreaterEqual(self.browser.run("return document.querySelectorAll('.answer').length"), 5)

    def test_the_figures_are_those_of_the_summary(self):
        script = "return [...document.querySelectorAll('[data-figure]')].map(e => [e.dataset.figure, e.dataset.value, e.textContent])"
        for directory in self.pages():
            summary = json.loads((directory / "summary.json").read_text())
            found = self.browser.run(script)
            self.assertGreaterEqual(len(found), 10)
            for key, value, text in found:
                exact = lookup(summary, key)
                self.assertEqual(float(value), exact, key)
                # What is shown has three digits at least.
                self.assertAlmostEqual(read(text), exact, delta=max(abs(exact) * 0.01, 0.0006), msg=f"{key}: {text}")

    def test_every_chart_has_curves_a_unit_and_labels(self):
        script = """return [...document.querySelectorAll('.panel')].map(p => [p.id, p.querySelectorAll('.curve, .area').length,
            p.querySelectorAll('svg text').length, p.querySelector('figcaption span').textContent,
            Math.max(...[...p.querySelectorAll('.curve, .area')].map(c => c.getBBox().width))])"""
        for width in WIDTHS:
            for _ in self.pages(width):
                charts = self.browser.run(script)
                self.assertGreaterEqual(len(charts), 5)
                for name, curves, labels, unit, extent in charts:
                    self.assertGreater(curves, 0, name)
                    self.assertGreater(labels, 4, name)
                    self.assertNotEqual(unit, "", name)
                    self.assertGreater(extent, 5, f"{name} is empty")

    def test_zoom_by_drag_button_and_key(self):
        for _ in self.pages():
            whole = self.window()
            self.browser.drag("#chart-nodes svg", 0.3, 0.6)
            dragged = self.window()
            self.assertNotEqual(dragged, whole)
            self.browser.click("#zoom-in")
            closer = self.window()
            self.assertNotIn(closer, (whole, dragged))
            self.browser.press("#chart-nodes svg", "-")
            self.browser.click("#whole")
            self.assertEqual(self.window(), whole)

    def test_the_slider_moves_the_replay_and_the_cursor(self):
        says = "return document.querySelector('#replay-says').textContent"
        cursor = "return document.querySelector('#chart-nodes .cursor').getAttribute('x1')"
        for _ in self.pages():
            before = (self.browser.run(says), self.browser.run(cursor))
            self.browser.run("const s = document.querySelector('#slider'); s.value = s.max / 2; s.dispatchEvent(new Event('input'))")
            self.browser.settle()
            after = (self.browser.run(says), self.browser.run(cursor))
            self.assertNotEqual(before[0], after[0])
            self.assertNotEqual(before[1], after[1])
            painted = self.browser.run("""const c = document.querySelector('#replay-stage canvas');
                return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size""")
            self.assertGreater(painted, 3, "the replay shows boxes and pods")

    def test_play_pause_and_steps(self):
        at = "return Number(document.querySelector('#slider').value)"
        for _ in self.pages():
            self.browser.click("#next")
            self.browser.click("#next")
            first = self.browser.run(at)
            self.assertGreater(first, 0)
            self.browser.click("#before")
            self.assertLess(self.browser.run(at), first)
            self.browser.click("#play")
            time.sleep(0.5)
            self.browser.click("#play")
            paused = self.browser.run(at)
            self.assertGreater(paused, 0)
            time.sleep(0.3)
            self.assertEqual(self.browser.run(at), paused)

    def test_decisions_are_searched_and_lead_to_the_replay(self):
        rows = "return document.querySelectorAll('.decisions tbody tr').length"
        for _ in self.pages():
            self.assertGreater(self.browser.run(rows), 0)
            self.browser.run("const s = document.querySelector('.filters input'); s.value = 'no such cause'; s.dispatchEvent(new Event('input'))")
            self.browser.settle()
            self.assertEqual(self.browser.run(rows), 0)
            self.browser.run("const s = document.querySelector('.filters input'); s.value = ''; s.dispatchEvent(new Event('input'))")
            self.browser.settle()
            self.browser.run("[...document.querySelectorAll('.decisions button')].at(-1).click()")
            self.browser.settle()
            self.assertGreater(self.browser.run("return Number(document.querySelector('#slider').value)"), 0)

    def test_a_comparison_draws_a_curve_for_each_policy(self):
        script = """return [...document.querySelectorAll('.panel')].map(p => [p.id, p.querySelectorAll('.curve').length,
            p.querySelectorAll('.legend button').length])"""
        for directory in COMPARISONS:
            policies = json.loads((directory / "comparison.json").read_text())["policies"]
            for width, pixels in WIDTHS.items():
                with self.subTest(comparison=directory.name, width=width):
                    self.browser.open(directory / "comparison.html", pixels)
                    self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), pixels)
                    self.assertEqual(self.browser.run(HIDDEN), 0)
                    self.assertGreaterEqual(self.browser.run("return document.querySelectorAll('svg.dots').length"), 1)
                    charts = self.browser.run(script)
                    self.assertGreaterEqual(len(charts), 3)
                    for name, curves, names in charts:
                        self.assertEqual((curves, names), (len(policies), len(policies)), name)
                    self.assertEqual(self.browser.complaints(), [])

    def test_everything_is_reached_by_the_keyboard(self):
        script = """return [...document.querySelectorAll('#player button, #player input, .panel svg[tabindex], .legend button')]
            .filter(e => e.tabIndex < 0 || !(e.getAttribute('aria-label') || e.textContent)).length"""
        for _ in self.pages():
            self.assertEqual(self.browser.run(script), 0)


if __name__ == "__main__":
    if not DIRECTORIES:
        sys.exit(__doc__)
    unittest.main(argv=sys.argv[:1], verbosity=2)
