"""Opens `nodecast studio` in headless Chromium and moves what can be moved, as a person would.

    AXE=axe.min.js python3 tests/browser/test_studio.py NODECAST SCENARIO SCENARIO

NODECAST is the program. The first scenario has a NodePool whose consolidateAfter can be moved, the second Spot instances. Needs chromium and chromedriver; of
Python only the standard library. STUDIO_MOVES is how many quick moves are made before the memory is looked at (1000), STUDIO_PICTURES a folder
for pictures of the page.
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM, *SCENARIOS = sys.argv[1:]
sys.argv = sys.argv[:1]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from axe import violations  # noqa: E402
from test_report import HIDDEN, Browser  # noqa: E402

MOVES = int(os.environ.get("STUDIO_MOVES", "1000"))
PICTURES = os.environ.get("STUDIO_PICTURES")
SIZES = {"desktop": (1440, 900), "phone": (390, 844)}
NUMBERS = "return Object.fromEntries([...document.querySelectorAll('.number')].map(e => [e.dataset.figure, [e.dataset.value, e.dataset.today, e.dataset.seeds, e.textContent]]))"
ROWS = "return Object.fromEntries([...document.querySelectorAll('tr[data-seed]')].map(e => [e.dataset.seed, JSON.parse(e.dataset.values)]))"
# Moves the slider of a control to the stop with this label, as a hand does.
SLIDE = """const [id, label] = arguments; const control = document.querySelector(`[data-control="${CSS.escape(id)}"]`);
    control.closest('details').open = true; const input = control.querySelector('input[type=range]');
    for (let n = 0; n <= Number(input.max); n++) { input.value = n; if (about.controls.find(own => own.id === id).stops[n].label === label) break; }
    input.dispatchEvent(new Event('input', {bubbles: true})); return input.getAttribute('aria-valuetext')""".replace(
    "about.", "JSON.parse(document.getElementById('data').textContent).")


class Studio:
    """The program, serving."""

    def __init__(self, scenario, *more):
        command = [PROGRAM, "studio", scenario, "--no-open", *more]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()

    def memory(self):
        """Resident bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


class StudioPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = f"{cls.place.name}/kept"
        cls.studios = [Studio(own, "--replications", "5", "--write", f"{cls.folder}-{n}") for n, own in enumerate(SCENARIOS)]

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        for studio in cls.studios:
            studio.close()
        cls.place.cleanup()

    def visit(self, studio, size="desktop", state=""):
        width, height = SIZES[size]
        self.browser.call("POST", f"{self.browser.session}/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride",
                          "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}})
        # The same address with another state is no other page.
        self.browser.call("POST", f"{self.browser.session}/url", {"url": "about:blank"})
        self.browser.call("POST", f"{self.browser.session}/url", {"url": studio.address + state})
        self.wait("done")

    def wait(self, state, seconds=120):
        end = time.time() + seconds
        while time.time() < end:
            if self.browser.run("return document.body.dataset.state") == state:
                self.browser.settle()
                return
            time.sleep(0.02)
        self.fail(f"not {state} but {self.browser.run('return document.body.dataset.state + document.getElementById(`status`).textContent')}")

    def slide(self, control, label):
        self.assertEqual(self.browser.run(SLIDE, control, label), label)
        self.browser.settle()

    def hash(self):
        """The state in the address, which follows quick moves after a moment."""
        time.sleep(0.5)
        return self.browser.run("return location.hash")

    def about(self):
        return json.loads(self.browser.run("return document.getElementById('data').textContent"))

    def sliders(self):
        return [own for own in self.about()["controls"] if own["form"] == "slider"]

    def picture(self, name):
        if PICTURES:
            data = self.browser.call("GET", f"{self.browser.session}/screenshot")
            pathlib.Path(PICTURES, f"{name}.png").write_bytes(base64.b64decode(data))

    def ran(self, command):
        """The summary of the run that a command of the page makes."""
        with tempfile.TemporaryDirectory() as out:
            line = command.replace("nodecast", f"exec '{PROGRAM}'", 1) + f" --format json --quiet --out {out}/report"
            return json.loads(subprocess.run(["sh", "-c", line], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)

    def test_opens_on_both_scenarios_without_complaint_and_fits(self):
        for number, studio in enumerate(self.studios):
            for size, (width, _) in SIZES.items():
                for scheme in ("light", "dark"):
                    with self.subTest(scenario=SCENARIOS[number], size=size, scheme=scheme):
                        self.browser.scheme(scheme)
                        self.visit(studio, size)
                        self.assertEqual(self.browser.complaints(), [])
                        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
                        self.assertEqual(self.browser.run(HIDDEN), 0)
                        found = self.browser.run(NUMBERS)
                        self.assertEqual(len(found), 4)
                        for value, today, seeds, _ in found.values():
                            self.assertEqual((value, seeds), (today, "5"))
                        charts = self.browser.run("return [...document.querySelectorAll('.panel')].map(e => e.querySelectorAll('path.curve').length)")
                        self.assertTrue(len(charts) >= 3 and min(charts) >= 1, charts)
                        self.assertGreater(len(self.about()["controls"]), 5)
                        self.assertEqual(violations(self.browser), [])
                        if size == "desktop":
                            bottoms = self.browser.run("""return ['.number', '.panel svg'].map(s =>
                                document.querySelector(s).getBoundingClientRect().bottom + scrollY)""")
                            self.assertLessEqual(max(bottoms), 900, "the first screen has the answer and a picture")
                        else:
                            tops = self.browser.run("""return ['.panel', '#controls', '.panel:nth-child(2)'].map(s =>
                                document.querySelector(s).getBoundingClientRect().top)""")
                            self.assertEqual(tops, sorted(tops), "the controls follow the first chart")
                        self.picture(f"{number}-{size}-{scheme}-today")
                        load = [own for own in self.sliders() if own["id"] in ("load", "spot-storm")][0]
                        self.slide(load["id"], load["stops"][-1]["label"])
                        self.wait("done")
                        self.picture(f"{number}-{size}-{scheme}-moved")
                        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
                        self.assertEqual(self.browser.complaints(), [])
        self.browser.scheme("light")

    def test_numbers_change_and_are_those_of_run(self):
        for number, studio in enumerate(self.studios):
            with self.subTest(scenario=SCENARIOS[number]):
                self.visit(studio)
                before = self.browser.run(NUMBERS)
                wanted = ("consolidate-after", "spot-storm")[number]
                control = [own for own in self.sliders() if own["id"].startswith(wanted)][0]
                stop = control["stops"][0] if control["stops"][0]["value"] != control["today"] else control["stops"][-2]
                self.slide(control["id"], stop["label"])
                self.wait("done")
                after = self.browser.run(NUMBERS)
                self.assertEqual({name: own[1] for name, own in after.items()}, {name: own[0] for name, own in before.items()}, "today is today")
                self.assertNotEqual(after["cost_per_month"][0], before["cost_per_month"][0])
                first = int(self.browser.run("return document.body.dataset.firstMs"))
                print(f"{SCENARIOS[number]}: first number {first} ms after the move", file=sys.stderr)
                summary = self.ran(self.browser.run("return document.querySelector('.command').textContent"))
                wait = summary["pods"]["wait_for_node"]
                expected = [summary["cost"]["per_month"], wait and wait["p99_seconds"], summary["availability"]["unavailable_pod_minutes"], summary["pods"]["evicted"]]
                row = self.browser.run(ROWS)[str(summary["about"]["seed"])]
                self.assertEqual(row[:2] + row[3:], expected[:2] + expected[3:])
                if row[2] is not None:
                    self.assertEqual(row[2], expected[2])

    def test_a_second_move_takes_the_place_of_the_first(self):
        self.visit(self.studios[0])
        for label in ("\u00d7 3", "\u00d7 1.5", "\u00d7 2", "\u00d7 0.5"):
            self.browser.run(SLIDE, "load", label)
            time.sleep(0.05)
        self.wait("done")
        waited = float(self.browser.run("return document.body.dataset.waitedMs"))
        print(f"{SCENARIOS[0]}: let go of what was no longer wanted within {waited:.1f} ms", file=sys.stderr)
        # A release lets go within 100 ms; a build without optimisation, and a busy machine, take longer.
        self.assertLess(waited, 1_000)
        self.assertIn("load=0.5", self.hash())
        command = self.browser.run("return document.querySelector('.command').textContent")
        self.assertIn("load[0].requests.scale=0.5", command)
        row = self.browser.run(ROWS)
        self.assertEqual(row[min(row, key=int)][0], self.ran(command)["cost"]["per_month"])
        self.assertEqual(self.browser.complaints(), [])

    def test_requests_are_moved_and_written(self):
        studio = self.studios[0]
        self.visit(studio)
        control = [own for own in self.sliders() if own["id"].startswith("requests-cpu.")][0]
        today = [n for n, own in enumerate(control["stops"]) if own["value"] == control["today"]][0]
        self.assertRegex(control["stops"][today]["label"], r"^[\d.]+ cores?$")
        marked = self.browser.run("return document.querySelector(`[data-control='${arguments[0]}'] .mark-today`).textContent", control["id"])
        self.assertEqual(marked, f"today {control['stops'][today]['label']}")
        stop = control["stops"][-1]
        self.slide(control["id"], stop["label"])
        self.wait("done")
        numbers = self.browser.run(NUMBERS)
        self.assertNotEqual(numbers["cost_per_month"][0], numbers["cost_per_month"][1])
        diff = self.browser.run("return document.querySelector('.diff').textContent")
        self.assertRegex(diff, rf"\+ .*resources\.requests\.cpu: {stop['value']}\n")
        command = self.browser.run("return document.querySelector('.command').textContent")
        row = self.browser.run(ROWS)
        self.assertEqual(row[min(row, key=int)][0], self.ran(command)["cost"]["per_month"])
        self.picture("requests")
        self.assertEqual(self.browser.complaints(), [])

    def test_an_address_is_a_state_and_steps_can_be_taken_back(self):
        studio = self.studios[0]
        self.visit(studio)
        control = [own for own in self.sliders() if own["id"].startswith("consolidate-after")][0]
        self.slide(control["id"], "10m")
        self.wait("done")
        state = self.hash()
        moved = self.browser.run(NUMBERS)
        self.visit(studio, state=state)
        self.assertEqual(self.browser.run(NUMBERS), moved)
        self.slide(control["id"], "20m")
        self.browser.click("#undo")
        self.assertEqual(self.hash(), state)
        self.browser.click("#redo")
        self.assertIn("20m", self.hash())
        self.browser.click("#reset")
        self.assertEqual(self.hash(), "")
        self.visit(studio, state="#load=7&nonsense=1&consolidate-after.NodePool-spot=%00&keep=x")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.control.moved').length"), 0)
        self.assertEqual(self.browser.complaints(), [])

    def test_keys_are_enough(self):
        self.visit(self.studios[0])
        self.browser.run("document.querySelector('[data-control=load] input').focus()")
        self.browser.type("\ue014")
        self.wait("done")
        self.assertEqual(self.hash(), "#load=1.1")
        self.browser.type("k")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.kept-list li').length"), 1)
        # The focus is where a person left it, whatever was drawn anew.
        self.assertEqual(self.browser.run("return document.activeElement.id"), "control-load")
        order = self.browser.run("return [...document.querySelectorAll('button, input, select, summary, a')].filter(e => e.tabIndex >= 0 && e.offsetParent).length")
        self.assertGreater(order, 10)

    def test_what_is_kept_is_written_and_accepted(self):
        self.visit(self.studios[0])
        control = [own for own in self.sliders() if own["id"].startswith("consolidate-after")][0]
        self.slide(control["id"], "10m")
        self.wait("done")
        self.browser.click("#keep")
        self.slide(control["id"], "30m")
        self.wait("done")
        self.browser.click("#keep")
        # What is kept has an address, too.
        self.visit(self.studios[0], state=self.hash())
        self.assertEqual(self.browser.run("return document.querySelectorAll('.kept-list li').length"), 2)
        self.browser.click("#write")
        for _ in range(200):
            if not self.browser.run("return document.getElementById('written').hidden"):
                break
            time.sleep(0.05)
        said = self.browser.run("return document.getElementById('written').textContent")
        self.assertIn("nodecast compare", said)
        self.picture("written")
        folder = pathlib.Path(f"{self.folder}-0")
        checked = subprocess.run([PROGRAM, "validate", str(folder / "scenario.yaml")], stdout=subprocess.PIPE, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertEqual(len(json.loads((folder / "studio.json").read_text())["kept"]), 2)
        self.assertEqual(self.browser.complaints(), [])

    def test_two_replays_go_together(self):
        self.visit(self.studios[0], state="#load=2")
        link = self.browser.run("return [...document.querySelectorAll('#more a')].map(e => e.href)[0]")
        self.browser.call("POST", f"{self.browser.session}/url", {"url": link})
        sliders = "[...document.querySelectorAll('iframe')].map(e => e.contentDocument.getElementById('slider'))"
        for _ in range(400):
            if self.browser.run(f"return {sliders}.every(Boolean)"):
                break
            time.sleep(0.1)
        time.sleep(0.5)
        self.browser.run(f"const own = {sliders}[1]; own.value = 5000; own.dispatchEvent(new Event('input'))")
        time.sleep(0.5)
        self.assertEqual(self.browser.run(f"return {sliders}.map(e => e.value)"), ["5000", "5000"])
        self.picture("replay")
        self.assertEqual(self.browser.complaints(), [])

    def test_others_are_refused(self):
        studio = self.studios[0]
        port = re.search(r":(\d+)/", studio.address).group(1)
        asks = [(f"http://127.0.0.1:{port}/", {}), (f"http://127.0.0.1:{port}/{'0' * 32}/", {}), (studio.address, {"Origin": "http://evil.example"}),
                (studio.address, {"Host": "evil.example"}), (studio.address.replace("127.0.0.1", "localhost"), {})]
        for address, headers in asks:
            with self.subTest(address=address, headers=headers), self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10)
            self.assertEqual(refused.exception.code, 403)
        # A page of another origin, in the same browser, that knows the address.
        self.browser.call("POST", f"{self.browser.session}/url", {"url": "data:text/html,<title>other</title>"})
        script = """const done = arguments[1]; fetch(arguments[0] + 'write', {method: 'POST', mode: 'no-cors', body: '{"entries":[]}'})
            .then(a => done([a.type, a.status]), e => done(String(e)))"""
        answer = self.browser.call("POST", f"{self.browser.session}/execute/async", {"script": script, "args": [studio.address]})
        self.assertTrue(answer == ["opaque", 0] or "TypeError" in answer, answer)
        self.browser.complaints()

    def test_memory_stays(self):
        studio = self.studios[0]
        self.visit(studio)
        quick = """const [from, count, done] = arguments; const controls = [...document.querySelectorAll('.control input[type=range]')];
            let n = from; const next = () => { if (n >= from + count) return done(true); const input = controls[n % controls.length];
            input.value = (n * 7) % (Number(input.max) + 1); input.dispatchEvent(new Event('input', {bubbles: true})); n += 1;
            setTimeout(next, n % 10 === 0 ? 250 : 15); }; next()"""
        self.browser.call("POST", f"{self.browser.session}/timeouts", {"script": 600_000})
        moves = lambda start, count: self.browser.call("POST", f"{self.browser.session}/execute/async", {"script": quick, "args": [start, count]})
        moves(0, 10)
        self.browser.click("#reset")
        self.wait("done")
        before = studio.memory()
        # A hundred at a time: on a busy machine all together take longer than the browser is waited for.
        for start in range(0, MOVES, 100):
            moves(10 + start, min(100, MOVES - start))
        self.browser.click("#reset")
        self.wait("done")
        after = studio.memory()
        print(f"memory: {before / 1e6:.1f} MB after ten moves, {after / 1e6:.1f} MB after {MOVES} more", file=sys.stderr)
        self.assertLess(after - before, 20e6)
        self.assertEqual(self.browser.complaints(), [])


if __name__ == "__main__":
    unittest.main()
