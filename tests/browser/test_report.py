"""Opens reports in headless Chromium, as a reader would: from the disk, without a network.

    python3 tests/browser/test_report.py DIRECTORY...

A directory holds report.html and summary.json, or comparison.html and comparison.json, sweep.html, rightsize.html, or drain.html. Needs chromium and chromedriver; of Python only the standard library.
The browser is driven by WebDriver, which is JSON over HTTP.
"""

import base64
import csv
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
SWEEPS = [directory for directory in DIRECTORIES if (directory / "sweep.html").exists()]
# Pages that a table of bars opens: what right-sized requests save, and what a drain does.
BARS = [directory / name for directory in DIRECTORIES for name in ("rightsize.html", "drain.html") if (directory / name).exists()]
REPORTS = [directory for directory in DIRECTORIES if directory not in COMPARISONS + SWEEPS + [page.parent for page in BARS]]
NAMES = ("report.html", "comparison.html", "sweep.html", "rightsize.html", "drain.html")
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

    def scheme(self, name):
        """Imitates a reader who has set `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self.call("POST", f"{self.session}/goog/cdp/execute", command)

    def paper(self, is_paper):
        """Lays the page out as on paper, or on a screen again."""
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"media": "print" if is_paper else ""}}
        self.call("POST", f"{self.session}/goog/cdp/execute", command)
        self.run("dispatchEvent(new Event(arguments[0]))", "beforeprint" if is_paper else "afterprint")
        self.settle()

    def printed_pages(self):
        """How many pages of A4 the page has on paper."""
        size = {"page": {"width": 21.0, "height": 29.7}, "margin": {side: 1.0 for side in ("top", "bottom", "left", "right")}}
        pdf = base64.b64decode(self.call("POST", f"{self.session}/print", size))
        return len(re.findall(rb"/Type\s*/Page\b", pdf))

    def type(self, key):
        """Presses a key as a person does, wherever the focus is."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})
        self.settle()

    def place(self, selector):
        """Where an element is, in the middle of the screen."""
        return self.run("const b = document.querySelector(arguments[0]); b.scrollIntoView({block: 'center'});"
                        "const r = b.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]", selector)

    def touch(self, selector, *fingers):
        """Puts fingers on an element, moves each from one share of its width to another, and lifts them."""
        left, top, width, height = self.place(selector)
        points = lambda shares: [{"x": left + share * width, "y": top + height / 2, "id": n} for n, share in enumerate(shares)]
        steps = [("touchStart", points(start for start, _ in fingers))]
        steps += [("touchMove", points(a + (b - a) * part / 4 for a, b in fingers)) for part in range(1, 5)]
        for kind, at in [*steps, ("touchEnd", [])]:
            command = {"cmd": "Input.dispatchTouchEvent", "params": {"type": kind, "touchPoints": at}}
            self.call("POST", f"{self.session}/goog/cdp/execute", command)
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
        box = self.place(selector)
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
    """The number that a text for people states: `$1,234.50`, `12.3%`, `1m05s`, `250 ms`, `7.9 pod-minutes`."""
    text = text.replace("\u00a0", " ").removesuffix(" pod-minutes")
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

    def pages(self, width="desktop", unfolded=True):
        for directory in REPORTS:
            with self.subTest(report=directory.name, width=width):
                self.browser.open(directory / "report.html", WIDTHS[width])
                if unfolded:
                    self.unfold()
                yield directory
                self.assertEqual(self.browser.complaints(), [])

    def unfold(self):
        """Opens everything that is folded."""
        self.browser.run("for (const fold of document.querySelectorAll('details.fold')) fold.open = true")
        self.browser.settle()
        self.browser.settle()

    def window(self):
        return self.browser.run("return document.querySelector('#player .window').textContent")

    def test_opens_without_complaint_and_fits_every_width(self):
        for width, pixels in WIDTHS.items():
            for _ in self.pages(width):
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), pixels)
                self.assertEqual(self.browser.run(HIDDEN), 0)
                self.assertEqual(self.browser.run("return document.querySelectorAll('.answer').length"), 4)

    def test_the_first_screen_answers_and_the_page_is_short(self):
        """Answers and the first chart stand on the first screen; the page as it opens is at most 6,000 pixels, whatever the cluster."""
        script = """const bottom = (e) => e.getBoundingClientRect().bottom + scrollY;
            return [bottom(document.querySelector('.answers')), bottom(document.querySelector('#first-panels .panel svg')),
                document.documentElement.scrollHeight]"""
        for width in WIDTHS:
            for directory in self.pages(width, unfolded=False):
                answers, chart, page = self.browser.run(script)
                print(f"{directory.name}, {width}: answers end at {answers:.0f}, the chart at {chart:.0f}, the page at {page:.0f} px")
                self.assertLessEqual(page, 6000)
                if width == "desktop":
                    self.assertLessEqual(chart, 900)
                else:
                    self.assertLessEqual(answers, 900)

    def test_folds_open_by_link_address_and_keyboard(self):
        shown = "return document.querySelector(arguments[0]).checkVisibility()"
        for directory in self.pages(unfolded=False):
            self.assertFalse(self.browser.run(shown, "#assumptions"))
            self.browser.click(".answer a[href='#assumptions']")
            self.assertTrue(self.browser.run(shown, "#assumptions"))
            self.browser.run("location.hash = '#bill'")
            self.browser.settle()
            self.browser.settle()
            self.assertTrue(self.browser.run(shown, "#bill"))
            self.browser.run("document.querySelector('#nodes > summary').focus()")
            self.browser.type(" ")
            self.assertTrue(self.browser.run("return document.querySelector('#nodes').open"))

    def test_long_tables_show_twelve_rows_and_are_searched(self):
        script = """return [...document.querySelectorAll('.fold .scroll')].filter(e => !e.querySelector('.decisions')).map(e =>
            [e.querySelectorAll('tbody tr').length, [...e.querySelectorAll('tbody tr')].filter(r => r.getClientRects().length).length,
            e.previousElementSibling?.classList.contains('finder') ?? false])"""
        found = 0
        for _ in self.pages():
            for rows, shown, finder in self.browser.run(script):
                self.assertEqual((shown, finder), (min(rows, 12), rows > 12))
                found += rows > 12
            if not self.browser.run("return document.querySelector('.finder') !== null"):
                continue
            searched = self.browser.run("""const f = document.querySelector('.finder');
                const last = [...f.nextElementSibling.querySelectorAll('tbody tr')].at(-1);
                f.querySelector('input').value = last.textContent.slice(0, 400);
                f.querySelector('input').dispatchEvent(new Event('input'));
                return last.getClientRects().length > 0""")
            self.assertTrue(searched)
        if len(REPORTS) > 2:
            self.assertGreater(found, 0)

    def test_nothing_runs_or_is_shown_but_what_the_page_brings(self):
        """The policy of a page lets nothing else load, run or paint, even if something comes to stand in it as markup."""
        pages = [(directory, name) for directory in DIRECTORIES for name in NAMES if (directory / name).exists()]
        script = """const made = (name, keys) => Object.assign(document.createElement(name), keys);
            document.head.append(made('script', {textContent: 'window.taken = 1'}),
                made('style', {textContent: 'body { outline: 7px solid red }'}));
            document.body.insertAdjacentHTML('beforeend', '<p id="planted" style="position: fixed" onclick="window.taken = 1">');
            document.querySelector('#planted').click();
            const style = getComputedStyle(document.body);
            return [window.taken === undefined, style.outlineWidth !== '7px', style.display,
                getComputedStyle(document.querySelector('#planted')).position, document.querySelectorAll('main img, main iframe').length]"""
        for directory, name in pages:
            with self.subTest(report=directory.name, page=name):
                self.browser.open(directory / name, WIDTHS["desktop"])
                self.assertEqual(self.browser.complaints(), [], "its own style and script are let through")
                self.assertEqual(self.browser.run(script), [True, True, "block", "static", 0])
                refused = self.browser.complaints()
                self.assertTrue(refused and all("Content Security Policy" in str(own) for own in refused), refused)

    def test_hostile_texts_are_text(self):
        for directory in [own for own in REPORTS if own.name == "hostile"]:
            self.browser.open(directory / "report.html", WIDTHS["desktop"])
            says = self.browser.run("return [window.taken === undefined, document.body.textContent]")
            self.assertTrue(says[0])
            for text in ("</script><script>window.taken = 1</script>", "<img src=x onerror='window.taken = 1'>", "{{7*7}}"):
                self.assertIn(text, says[1])

    def test_the_figures_are_those_of_the_summary(self):
        script = "return [...document.querySelectorAll('[data-figure]')].map(e => [e.dataset.figure, e.dataset.value, e.textContent])"
        for directory in self.pages():
            summary = json.loads((directory / "summary.json").read_text())
            found = self.browser.run(script)
            self.assertGreaterEqual(len(found), 10)
            for key, value, text in found:
                exact = lookup(summary, key)
                self.assertEqual(float(value), exact, key)
                # What is shown has three digits at least; pod-minutes have one decimal.
                least = 0.05 if text.endswith("pod-minutes") else 0.0006
                self.assertAlmostEqual(read(text), exact, delta=max(abs(exact) * 0.01, least), msg=f"{key}: {text}")

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

    def top(self, chart):
        """The highest label of a chart's upright axis."""
        labels = "return [...document.querySelectorAll(`#chart-${arguments[0]} svg text[text-anchor=end]:not(.peak)`)].map(e => e.textContent)"
        return max(read(text) for text in self.browser.run(labels, chart) if text != "UTC")

    def test_a_short_peak_is_cut_off_and_told(self):
        note = """const n = document.querySelector('#chart-pending .peak-note');
            return n.hidden ? '' : [...n.children].map(e => e.textContent).join('')"""
        cut = False
        for _ in self.pages():
            says = self.browser.run(note)
            if "is cut off" not in says:
                continue
            cut = True
            peak = read(re.search(r" peak of ([\d.,]+) at", says).group(1))
            low = self.top("pending")
            self.assertGreater(peak, 2 * low)
            mark = self.browser.run("return document.querySelector('#chart-pending .peak').textContent")
            self.assertEqual(read(mark), peak)
            self.browser.click("#chart-pending .peak-note button")
            self.assertGreaterEqual(self.top("pending"), peak)
            self.assertIn("clip it", self.browser.run(note))
            # A window without the peak has a scale of its own, and nothing is cut off in it.
            self.browser.drag("#chart-pending svg", 0.5, 0.9)
            self.assertLess(self.top("pending"), peak)
            self.assertEqual(self.browser.run(note), "")
        if any(directory.name == "spot-storm" for directory in REPORTS):
            self.assertTrue(cut, "ninety pods wait at the start of the storm's cluster")

    def test_no_axis_has_two_equal_ticks(self):
        """Labels that stand along one line are those of one axis."""
        script = """return [...document.querySelectorAll('svg')].flatMap(svg => {
            const lines = new Map();
            for (const e of svg.querySelectorAll(':scope > text:not(.axis, .peak, .off, .mark)')) {
                const line = e.getAttribute('text-anchor') === 'end' ? `x${e.getAttribute('x')}` : `y${e.getAttribute('y')}`;
                lines.set(line, [...(lines.get(line) ?? []), e.textContent]);
            }
            // Hours come again with each day.
            return [...lines.values()].map(labels => labels.filter(label => !/^\\d\\d:\\d\\d$/.test(label)))
                .filter(labels => new Set(labels).size < labels.length);
        })"""
        pages = [(directory, name) for directory in DIRECTORIES for name in NAMES if (directory / name).exists()]
        for directory, name in pages:
            with self.subTest(report=directory.name, page=name):
                self.browser.open(directory / name, WIDTHS["desktop"])
                self.unfold()
                self.assertEqual(self.browser.run(script), [])

    def test_first_screen_of_comparison_and_sweep_has_answer_and_picture(self):
        bottom = "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().bottom + scrollY)[0]"
        for directories, page, picture in ((COMPARISONS, "comparison.html", ".forest"), (SWEEPS, "sweep.html", ".plane svg.field")):
            for directory in directories:
                self.browser.open(directory / page, WIDTHS["desktop"])
                for part in (".verdict", picture):
                    self.assertLessEqual(self.browser.run(bottom, part), 900, f"{directory.name}: {part}")

    def test_pages_of_bars_answer_on_the_first_screen_and_fit_every_width(self):
        bottoms = """return ['.verdict', 'table.bars'].map(s => document.querySelector(s).getBoundingClientRect().bottom + scrollY)"""
        overlaps = """return [...document.querySelectorAll('.bars tfoot svg')].filter(svg => {
            const boxes = [...svg.querySelectorAll('text')].map(e => e.getBoundingClientRect()).filter(r => r.width > 0);
            return boxes.some((one, n) => boxes.slice(n + 1).some(two => one.left < two.right && two.left < one.right));
        }).length"""
        bars = "return [...document.querySelectorAll('.bars tbody svg rect')].filter(e => e.getBoundingClientRect().width > 1).length"
        for page in BARS:
            for width, pixels in WIDTHS.items():
                with self.subTest(page=page.name, width=width):
                    self.browser.open(page, pixels)
                    if width == "desktop":
                        self.assertLessEqual(max(self.browser.run(bottoms)), 900)
                    else:
                        self.assertLessEqual(self.browser.run(bottoms)[0], 900)
                    self.assertGreater(self.browser.run(bars), 1)
                    self.unfold()
                    self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), pixels)
                    self.assertEqual(self.browser.run(HIDDEN), 0)
                    self.assertEqual(self.browser.run(overlaps), 0)
                    self.assertEqual(self.browser.complaints(), [])

    def test_labels_of_axes_are_not_cut(self):
        script = """return [...document.querySelectorAll('.panel svg.chart > text')].map(e => [e.textContent, e.getBBox()])
            .filter(([, box]) => box.x < -0.5).map(([text]) => text)"""
        for width in WIDTHS:
            for _ in self.pages(width):
                self.assertEqual(self.browser.run(script), [])

    def test_a_warm_up_is_a_band_at_the_start_of_every_chart(self):
        bands = """return [...document.querySelectorAll('.panel')].map(p => p.querySelector('.warm-up')?.getBBox().width ?? 0)"""
        for directory in self.pages():
            warm_up = json.loads((directory / "summary.json").read_text())["about"].get("warm_up_seconds", 0)
            found = self.browser.run(bands)
            self.assertTrue(all((width > 0) == (warm_up > 0) for width in found), found)
            if warm_up > 0:
                self.assertIn("Warm-up ", self.browser.run("return document.querySelector('#warm-up').textContent"))
                self.browser.drag("#chart-nodes svg", 0.6, 0.9)
                self.assertEqual(set(self.browser.run(bands)), {0}, "later there is none")

    def test_curves_hold_their_values_and_never_rise_before_they_do(self):
        sloping = """return [...document.querySelectorAll('.panel .curve')].filter(e => /[LlCcQq]/.test(e.getAttribute('d'))).length"""
        for _ in self.pages():
            self.assertEqual(self.browser.run(sloping), 0)

    def test_what_inputs_say_is_read_whole_at_every_width(self):
        script = """const pen = document.createElement('canvas').getContext('2d');
            return [...document.querySelectorAll('input[placeholder], select')].map(e => {
                const style = getComputedStyle(e);
                pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
                const texts = e.placeholder ? [e.placeholder] : [...e.options].map(o => o.textContent);
                // The arrow of a list and the cross of a search take their room.
                const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 18;
                return [texts[0], Math.max(...texts.map(text => pen.measureText(text).width)), room];
            }).filter(([, needed, room]) => needed > room)"""
        for width in WIDTHS:
            for _ in self.pages(width):
                self.assertEqual(self.browser.run(script), [])

    def test_tables_fit_or_say_that_they_scroll(self):
        script = """return [...document.querySelectorAll('.scroll')].filter(e => e.clientWidth > 0 && (e.scrollWidth > e.clientWidth + 1)
            !== (getComputedStyle(e, '::before').content !== 'none' && e.tabIndex === 0)).length"""
        wide = "return [...document.querySelectorAll('.compared')].filter(e => e.scrollWidth > e.parentElement.clientWidth).length"
        pages = [(directory, "report.html") for directory in REPORTS] + [(directory, "comparison.html") for directory in COMPARISONS]
        for width, pixels in WIDTHS.items():
            for directory, page in pages:
                with self.subTest(page=f"{directory.name}/{page}", width=width):
                    self.browser.open(directory / page, pixels)
                    self.unfold()
                    self.assertEqual(self.browser.run(script), 0)
                    if width != "desktop":
                        self.assertEqual(self.browser.run(wide), 0)
                    self.assertEqual(self.browser.complaints(), [])

    def test_paper_has_every_column_and_colour_of_at_most_six_pages(self):
        cut = """return [...document.querySelectorAll('table')].filter(e =>
            e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.textContent.slice(0, 60))"""
        pale = """return [...document.querySelectorAll('.swatch, .mark')].filter(e =>
            getComputedStyle(e).printColorAdjust !== 'exact').length"""
        opened = "return [...document.querySelectorAll('details.fold')].filter(e => e.open).map(e => e.id)"
        pages = [(directory, "report.html") for directory in REPORTS] + [(directory, "comparison.html") for directory in COMPARISONS]
        pages += [(page.parent, page.name) for page in BARS]
        for directory, page in pages:
            with self.subTest(page=f"{directory.name}/{page}"):
                # What A4 has between margins of a centimetre.
                self.browser.open(directory / page, 718)
                seen = self.browser.run(opened)
                self.browser.paper(True)
                try:
                    self.assertEqual(self.browser.run(cut), [])
                    self.assertEqual(self.browser.run(pale), 0)
                    if page == "report.html":
                        self.assertEqual(self.browser.run(opened), ["charts", "cost", "rests-on"])
                finally:
                    self.browser.paper(False)
                self.assertEqual(self.browser.run(opened), seen)
                if page != "comparison.html":
                    self.assertLessEqual(self.browser.printed_pages(), 6)

    def test_drawings_of_replications_have_their_title_above_and_cut_nothing(self):
        script = """return [...document.querySelectorAll('figure.replications')].map(f => {
            const svg = f.querySelector('svg.dots').getBoundingClientRect();
            const page = document.documentElement.clientWidth;
            const parts = [...f.querySelectorAll('svg.dots text, svg.dots circle, svg.dots .interval, svg.dots .beyond')];
            return [f.querySelector('figcaption').getBoundingClientRect().bottom <= svg.top + 1, f.querySelector('figcaption').textContent,
                parts.filter(e => getComputedStyle(e).display !== 'none').map(e => e.getBoundingClientRect())
                    .filter(r => r.left < 0 || r.right > page).length,
                [...f.querySelectorAll('.interval')].map(e => [e.getBoundingClientRect(), e.parentElement.querySelectorAll('.beyond').length])
                    .filter(([r, tips]) => (r.left <= svg.left + 1 || r.right >= svg.right - 1) && tips === 0).length]
        })"""
        for directory in COMPARISONS:
            for width, pixels in WIDTHS.items():
                with self.subTest(comparison=directory.name, width=width):
                    self.browser.open(directory / "comparison.html", pixels)
                    drawings = self.browser.run(script)
                    self.assertGreaterEqual(len(drawings), 1)
                    for above, title, outside, cut in drawings:
                        self.assertTrue(above, title)
                        self.assertRegex(title, r"\((USD|CNY|time|number|percent)\)")
                        self.assertEqual((outside, cut), (0, 0), title)

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

    def test_one_finger_chooses_and_zooms_and_two_fingers_stretch(self):
        cursors = "return [...document.querySelectorAll('.panel .cursor')].map(c => c.getAttribute('x1'))"
        for _ in self.pages("phone"):
            whole, before = self.window(), self.browser.run(cursors)
            self.browser.touch("#chart-nodes svg", (0.4, 0.4))
            self.assertEqual(self.window(), whole, "a touch does not zoom")
            after = self.browser.run(cursors)
            self.assertNotEqual(before, after)
            self.assertEqual(len(set(after)), 1, "one cursor in all charts")
            self.browser.touch("#chart-nodes svg", (0.3, 0.6))
            dragged = self.window()
            self.assertNotEqual(dragged, whole)
            self.browser.click("#whole")
            self.browser.touch("#chart-nodes svg", (0.45, 0.3), (0.55, 0.8))
            self.assertNotIn(self.window(), (whole, dragged))
            self.browser.touch("#chart-nodes svg", (0.2, 0.45), (0.9, 0.55))
            self.browser.touch("#chart-nodes svg", (0.2, 0.45), (0.9, 0.55))
            self.assertEqual(self.window(), whole, "fingers that come together show more")

    def test_keys_alone_reach_play_and_move(self):
        at = "return Number(document.querySelector('#slider').value)"
        focused = "const e = document.activeElement; return [e.id || e.className.baseVal || e.tagName, getComputedStyle(e).outlineStyle]"
        arrow, space, tab = "\ue014", " ", "\ue004"
        for _ in self.pages():
            order = []
            for _ in range(60):
                self.browser.type(tab)
                order.append(self.browser.run(focused))
            names = [name for name, _ in order]
            reached = [names.index(name) for name in ("before", "play", "next", "slider", "left", "zoom-in", "whole", "chart")]
            self.assertEqual(reached, sorted(reached), names)
            self.assertTrue(all(outline != "none" for _, outline in order), "what has the focus shows it")
            duration = self.browser.run("return Number(document.querySelector('#slider').max)")
            self.browser.run("const s = document.querySelector('#slider'); s.value = 0; s.dispatchEvent(new Event('input')); s.focus()")
            self.browser.type(arrow)
            self.assertAlmostEqual(self.browser.run(at), duration / 100, delta=1)
            self.browser.type(space)
            time.sleep(0.4)
            self.browser.type(space)
            paused = self.browser.run(at)
            self.assertGreater(paused, duration / 100)
            time.sleep(0.2)
            self.assertEqual(self.browser.run(at), paused)

    def test_every_text_is_legible_in_light_and_in_dark(self):
        script = """
            const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
            const over = ([r, g, b, a = 1], ground) => [r, g, b].map((part, n) => part * a + ground[n] * (1 - a));
            const light = (color) => color.map((part) => part / 255)
                .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
                .reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0);
            const ground = (e) => {
                if (!e) return [255, 255, 255];
                const own = numbers(getComputedStyle(e).backgroundColor);
                return own[3] === 0 ? ground(e.parentElement) : over(own, ground(e.parentElement));
            };
            const found = [];
            for (const e of document.querySelectorAll('body *')) {
                const own = [...e.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
                if (!own || !e.getClientRects().length || ['SCRIPT', 'OPTION'].includes(e.tagName)) continue;
                const style = getComputedStyle(e);
                const back = ground(e.closest('svg')?.parentElement ?? e);
                const [one, two] = [light(over(numbers(e.closest('svg') ? style.fill : style.color), back)), light(back)];
                const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
                if (contrast < 4.5) found.push(`${e.tagName} ${e.textContent.slice(0, 40)} ${contrast.toFixed(2)}`);
            }
            return found;"""
        pages = [(directory, "report.html") for directory in REPORTS]
        pages += [(directory, "comparison.html") for directory in COMPARISONS] + [(directory, "sweep.html") for directory in SWEEPS]
        pages += [(page.parent, page.name) for page in BARS]
        try:
            for scheme in ("light", "dark"):
                self.browser.scheme(scheme)
                for directory, page in pages:
                    with self.subTest(page=f"{directory.name}/{page}", scheme=scheme):
                        self.browser.open(directory / page, WIDTHS["desktop"])
                        self.unfold()
                        self.assertEqual(self.browser.run(script), [])
        finally:
            self.browser.scheme("light")

    def test_answers_fill_their_rows(self):
        script = """const right = document.querySelector('.answers').getBoundingClientRect().right;
            return [...document.querySelectorAll('.answer')].map(e => Math.round(right - e.getBoundingClientRect().right));"""
        for width in WIDTHS:
            for _ in self.pages(width):
                self.assertLessEqual(max(self.browser.run(script)), 1)

    def test_a_run_of_more_than_a_day_says_days(self):
        script = "return [document.querySelector('#slider').max / 864000, document.querySelector('#player output').textContent]"
        day = r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d"
        for directory in self.pages():
            days, now = self.browser.run(script)
            if days >= 1:
                self.assertRegex(self.window(), rf"^Shown: {day} to {day} \(")
                self.assertRegex(now, rf"^{day}:\d\d UTC$")

    def test_the_replay_counts_nodes_as_the_legend_names_them(self):
        says = "return document.querySelector('#replay-says').textContent"
        names = "return [...document.querySelectorAll('#replay-stage .key li')].map(e => e.textContent)"
        for _ in self.pages():
            kinds = re.search(r"(\d+) nodes? Ready \(([^)]*)\)", self.browser.run(says))
            counts = [part.split(" ", 1) for part in kinds.group(2).split(", ")]
            self.assertEqual(sum(int(number) for number, _ in counts), int(kinds.group(1)))
            legend = self.browser.run(names)
            self.assertTrue(all(kind in legend for _, kind in counts), (counts, legend))

    def timelines(self):
        """Each report that has its tables beside it, with the rows of timeline.csv, about sixty of them."""
        for directory in self.pages():
            if (directory / "timeline.csv").exists():
                with open(directory / "timeline.csv", newline="") as file:
                    rows = list(csv.DictReader(file))
                yield directory, rows[:: max(len(rows) // 60, 1)]

    def test_the_replay_counts_all_nodes_as_timeline_csv_does(self):
        says = """const s = document.querySelector('#slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'));
            return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
                done(document.querySelector('#replay-says').textContent))))"""
        nodes = "const d = JSON.parse(document.getElementById('data').textContent).replay; return [d.nodes.length, d.nodes_in_all]"
        number = lambda words, text: int((re.search(rf"([\d,]+) {words}", text) or [0, "0"])[1].replace(",", ""))
        for directory, rows in self.timelines():
            drawn, in_all = self.browser.run(nodes)
            for row in rows:
                text = self.browser.run(says, round(float(row["at_seconds"]) * 10))
                kinds = [int(row.get(column) or 0) for column in ("nodes_spot", "nodes_on_demand", "nodes_fargate")]
                with self.subTest(report=directory.name, at=row["at_seconds"], says=text):
                    self.assertEqual(number("nodes? Ready", text), sum(kinds))
                    self.assertEqual(number("Spot", text), kinds[0])
                    self.assertEqual(number("starting", text), int(row["nodes_starting"]))
                    self.assertEqual(number("pods? on nodes", text), int(row["pods_starting"]) + int(row["pods_ready"]))
                    self.assertEqual(number("pending", text), int(row["pods_pending"]))
                    words = re.search(r"([\d,]+) of ([\d,]+) nodes are drawn; ([\d,]+) of the ([\d,]+) Ready now", text)
                    self.assertEqual(bool(words), drawn < in_all)
                    if words:
                        self.assertEqual([int(own.replace(",", "")) for own in words.groups()[:2]], [drawn, in_all])
                        self.assertEqual(int(words[4].replace(",", "")), sum(kinds))
                        self.assertLessEqual(int(words[3].replace(",", "")), sum(kinds))

    def test_layers_of_a_stack_add_up_to_timeline_csv(self):
        layers = """return [...document.querySelectorAll('#chart-nodes .legend button .says')].map(e => e.textContent.trim())"""
        move = """const s = document.querySelector('#slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"""
        for directory, rows in self.timelines():
            off = []
            for row in rows:
                self.browser.run(move, round(float(row["at_seconds"]) * 10))
                self.browser.settle()
                shown = sum(int(words.replace(",", "")) for words in self.browser.run(layers) if words != "\u2013")
                true = sum(int(row.get(column) or 0) for column in ("nodes_spot", "nodes_on_demand", "nodes_fargate"))
                off.append(abs(shown - true) / max(true, 1))
            # A thinned chart is a little late here and there, and right in the main.
            self.assertLessEqual(sum(one > 0.2 for one in off), len(off) // 10, (directory.name, off))

    def test_each_way_to_buy_has_a_colour_of_its_own_and_is_named_if_it_occurs(self):
        # The third value of a node's row is how it is bought, as the position of a name.
        occur = """const data = JSON.parse(document.getElementById('data').textContent);
            const names = {spot: 'Spot', 'on-demand': 'On-Demand', reserved: 'Reserved', fargate: 'Fargate'};
            return [...new Set(data.replay.nodes.map(([, row]) => names[data.names[row[2]]]))].filter(Boolean).sort()"""
        for place in ("#replay-stage", "#strips"):
            named = f"""return [...document.querySelectorAll('{place} .key li')].filter(e => /^(Spot|On-Demand|Reserved|Fargate)$/.test(e.textContent))
                .map(e => [e.textContent, getComputedStyle(e.querySelector('.mark')).backgroundColor])"""
            for _ in self.pages():
                keys = self.browser.run(named)
                self.assertEqual(sorted(name for name, _ in keys), self.browser.run(occur), place)
                self.assertEqual(len({colour for _, colour in keys}), len(keys), keys)

    def test_a_sweep_fits_every_width(self):
        for directory in SWEEPS:
            for width, pixels in WIDTHS.items():
                with self.subTest(sweep=directory.name, width=width):
                    self.browser.open(directory / "sweep.html", pixels)
                    self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), pixels)
                    self.assertEqual(self.browser.run(HIDDEN), 0)
                    overlaps = self.browser.run("""const boxes = [...document.querySelectorAll('.plane text')]
                        .map(e => e.getBoundingClientRect()).filter(r => r.width > 0);
                        return boxes.filter((one, n) => boxes.slice(n + 1).some(two => one.left < two.right && two.left < one.right
                            && one.top < two.bottom && two.top < one.bottom)).length""")
                    self.assertEqual(overlaps, 0)
                    self.assertGreaterEqual(self.browser.run("return document.querySelectorAll('.plane .front').length"), 1)
                    self.assertEqual(self.browser.complaints(), [])

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
