"""Checks that hold for every page of nodecast, in headless Chromium.

    AXE=axe.min.js python3 tests/browser/test_pages.py DIRECTORY...

A directory holds one or more of the pages in PAGES. Needs chromium and chromedriver; of Python only the standard library.
"""

import pathlib
import sys
import unittest

DIRECTORIES = [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]
sys.argv = sys.argv[:1]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from axe import violations  # noqa: E402
from test_report import WIDTHS, Browser  # noqa: E402

# Each page with its answer and its picture; a list of runs has no picture, the page of a fleet has bars.
PAGES = {
    "report.html": (".headline", "#first-panels .panel svg"),
    "comparison.html": (".verdict", ".forest"),
    "sweep.html": (".verdict", ".plane svg.field"),
    "recommend.html": (".verdict", ".savings"),
    "rightsize.html": (".verdict", "table.bars"),
    "drain.html": (".verdict", "table.bars"),
    "backtest.html": (".verdict", ".strip"),
    "index.html": ("h1", None),
}
FOUND = [directory / name for directory in DIRECTORIES for name in PAGES if (directory / name).exists()]
UNFOLD = "for (const fold of document.querySelectorAll('details')) fold.open = true"
BYTES_MAX = 1_000_000
# Least distance of two colours with one pattern for a reader who does not see red, or green.
DISTANCE = 15.0
# Source: Machado, Oliveira, Fernandes 2009, severity 1.0.
BLINDNESS = {
    "deuteranopia": ((0.367, 0.861, -0.228), (0.28, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
}
# Marks of each key, by the part of a drawing that they are for: colour, pattern, and name. Colours are those on the page's ground.
KEYS = """const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgb = (color, opacity) => {
        pen.globalAlpha = 1; pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--page'); pen.fillRect(0, 0, 1, 1);
        pen.globalAlpha = opacity; pen.fillStyle = color; pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data];
    };
    const shown = e => e.getClientRects().length && e.closest('button')?.ariaPressed !== 'false';
    const sort = (mark, name) => mark.matches('.swatch') ? 'pods' : /^(Spot|On-Demand|Reserved|Fargate)$/.test(name) ? 'nodes' : 'states';
    return [...document.querySelectorAll('.legend, .key')].flatMap(key => {
        const marks = [...key.querySelectorAll('.swatch, .mark, .sample')].filter(shown).map(mark => {
            const name = mark.parentElement.textContent.trim();
            const [first, over] = mark.querySelectorAll('rect, line, path');
            const style = getComputedStyle(first ?? mark);
            if (first?.matches('rect'))
                return ['bars', rgb(style.fill, style.fillOpacity), over ? getComputedStyle(over).fill : '', name];
            if (first) return ['curves', rgb(style.stroke, 1), style.strokeDasharray, name];
            const pattern = [style.backgroundImage.replace(/rgba?\\([^)]*\\)/g, ''), style.width, style.borderTopStyle, style.borderTopWidth];
            const color = style.borderTopWidth === '0px' ? style.backgroundColor : style.borderTopColor;
            return [sort(mark, name), rgb(color, 1), pattern.join(' '), name];
        });
        return Object.values(Object.groupBy(marks, mark => mark[0])).map(group => group.map(mark => mark.slice(1)));
    })"""
OVERLAPS = """return [...document.querySelectorAll('svg')].flatMap(svg => {
        const boxes = [...svg.querySelectorAll('text')].filter(e => e.checkVisibility()).map(e => [e.textContent, e.getBoundingClientRect()])
            .filter(([, box]) => box.width > 0);
        return boxes.flatMap(([one, a], n) => boxes.slice(n + 1).filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
            && a.top < b.bottom - 1 && b.top < a.bottom - 1).map(([two]) => `${one} and ${two}`));
    })"""
BACKTICKS = """const found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const node = texts.currentNode;
        if (/`[^`]+`/.test(node.data) && !node.parentElement.closest('script, style, code, pre')) found.push(node.data.slice(0, 120));
    }
    return found"""


def seen(color, matrix):
    """Lightness and two hues of a colour as a reader sees it through a matrix of linear light; CIE 1976 L*a*b*."""
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color[:3]]
    red, green, blue = (min(max(sum(a * b for a, b in zip(row, linear)), 0.0), 1.0) for row in matrix)
    root = lambda t: t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
    x = root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047)
    y = root(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    z = root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, two, matrix):
    return sum((a - b) ** 2 for a, b in zip(seen(one, matrix), seen(two, matrix))) ** 0.5


class Pages(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def collect(self, problems, width="desktop", schemes=("light",), unfolded=True):
        """What `problems` returns of each page, by page, as far as it is anything."""
        found = {}
        for scheme in schemes:
            self.browser.scheme(scheme)
            for page in FOUND:
                self.browser.open(page, WIDTHS[width])
                if unfolded:
                    self.browser.run(UNFOLD)
                    self.browser.settle()
                some = problems(page)
                if some:
                    found[f"{page.parent.name}/{page.name}, {width}, {scheme}"] = some
        self.browser.scheme("light")
        return found

    def test_axe_finds_no_violation(self):
        self.assertEqual(self.collect(lambda page: violations(self.browser), schemes=("light", "dark")), {})

    def test_first_screen_has_answer_and_picture(self):
        bottom = "return document.querySelector(arguments[0])?.getBoundingClientRect().bottom + scrollY"

        def below(page):
            parts = ("h1", ".bar svg") if page.parent.name == "fleet" else PAGES[page.name]
            bottoms = {part: self.browser.run(bottom, part) for part in parts if part}
            return {part: at for part, at in bottoms.items() if at is None or at > 900}
        self.assertEqual(self.collect(below, unfolded=False), {})

    def test_report_has_at_most_one_megabyte(self):
        sizes = {str(page): page.stat().st_size for page in FOUND if page.name == "report.html"}
        self.assertEqual({page: size for page, size in sizes.items() if size > BYTES_MAX}, {})

    def test_report_prints_on_at_most_six_pages(self):
        def too_long(page):
            pages = self.browser.printed_pages() if page.name == "report.html" else 0
            return f"{pages} pages" if pages > 6 else None
        self.assertEqual(self.collect(too_long, unfolded=False), {})

    def test_paper_shows_whole_lines_of_code(self):
        script = "return [...document.querySelectorAll('pre')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"

        def cut(page):
            self.browser.paper(True)
            found = self.browser.run(script)
            self.browser.paper(False)
            return found
        self.assertEqual(self.collect(cut), {})

    def test_colour_blind_readers_distinguish_marks_of_a_key(self):
        compared = 0

        def alike(page):
            nonlocal compared
            found = set()
            for key in self.browser.run(KEYS):
                # Past the palette, colours are worked out and named on hover.
                for position, (one, pattern, name) in enumerate(key if len(key) <= 8 else []):
                    for two, other_pattern, other in key[position + 1:]:
                        compared += 1
                        if pattern == other_pattern:
                            found |= {f"{name}, {other}: {kind}" for kind, matrix in BLINDNESS.items() if distance(one, two, matrix) < DISTANCE}
            return sorted(found)
        self.assertEqual(self.collect(alike, schemes=("light", "dark")), {})
        self.assertGreater(compared, 0)

    def test_no_labels_of_a_drawing_overlap(self):
        for width in WIDTHS:
            self.assertEqual(self.collect(lambda page: self.browser.run(OVERLAPS), width), {})

    def test_no_text_shows_backticks(self):
        self.assertEqual(self.collect(lambda page: self.browser.run(BACKTICKS)), {})


if __name__ == "__main__":
    if not DIRECTORIES:
        sys.exit(__doc__)
    unittest.main(verbosity=2)
