// Charts over one window of time, with one cursor. Drag or spread two fingers to zoom, click to choose the instant of the
// replay.

const MARGIN = { left: 48, right: 10, top: 8, bottom: 22 };

/** What is highest is looked for in so many equal parts of the window. */
const PARTS = 400;
/** A peak is cut off that is so many times as high as all the rest, and takes at most so many parts of the window. */
const PEAK = { times: 3, parts: 12 };
/** A chart that may be logarithmic is where its largest value is so many times the smallest. */
const MAGNITUDES = 50;

/** How curves of one colour are told apart, in order; those that stand behind another have a pattern of their own. */
const DASHES = ["none", "1.5 3.5", "9 3 2 3", "12 3"];
const BEHIND = "5 3";

/** A chart's curves, ready to be looked up: ascending times and a value for each. */
function decoded(chart) {
  const ofColor = new Map();
  // Curves that add up to a whole share their instants.
  const shared = chart.at ? sums(chart.at) : null;
  return chart.series.map((series) => {
    const values = runs(series.values);
    // The last of thinned samples may stand for fewer than the others.
    const times = shared ?? (series.at ? sums(series.at) : null) ?? values.map((_, n) => Math.min(n * series.every, data.duration));
    const before = ofColor.get(series.color) ?? 0;
    if (!series.faint) ofColor.set(series.color, before + 1);
    const dash = series.faint ? BEHIND : DASHES[(before + Math.floor((series.color ?? 0) / ALIKE)) % DASHES.length];
    return { ...series, values, times, dash, sampled: series.every !== undefined, shown: !series.hidden };
  });
}

/** The pattern of an area: Spot capacity has one, and colours beyond the first four another. */
function patternOf(series) {
  if (/\bSpot\b/.test(series.name)) return "spot";
  return (series.color ?? 0) >= ALIKE ? "more" : "";
}

/** Patterns of areas, once for all charts. */
function addPatterns() {
  const svg = drawing("svg", { width: 0, height: 0, "aria-hidden": "true", class: "patterns" });
  for (const [name, d] of [["spot", "M-1 1L1 -1M0 6L6 0M5 7L7 5"], ["more", "M0 3H6"]]) {
    const pattern = drawing("pattern", { id: `pattern-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" });
    pattern.append(drawing("path", { d }));
    svg.append(pattern);
  }
  document.body.append(svg);
}
addPatterns();

/** What a curve looks like, in its legend. */
function swatch(series, stacked) {
  if (stacked) return element("span", { class: `swatch ${patternOf(series)}`, style: `--own:${color(series.color)}` });
  const made = drawing("svg", { class: "sample", width: 22, height: 6, "aria-hidden": "true" });
  const line = drawing("line", { x1: 0, x2: 22, y1: 3, y2: 3, "stroke-width": 2.5, "stroke-dasharray": series.dash });
  line.style.stroke = color(series.color);
  made.append(line);
  return made;
}

/** What a curve is at an instant; nothing where it has no value. */
function valueAt(series, at) {
  const position = lastUntil(series.times, at);
  if (position < 0) return null;
  if (series.sampled && at - series.times[position] > series.every) return null;
  return series.values[position];
}

/** The points of a curve within the window, with the one whose value holds where it begins. */
function pointsIn(series, from, to) {
  const first = Math.max(lastUntil(series.times, from), 0);
  const last = lastUntil(series.times, to);
  const points = [];
  for (let n = first; n <= last; n++) points.push([series.times[n], series.values[n]]);
  return points;
}

/** The largest of what is left when the `PEAK.parts` parts around the largest are taken away that leave least. */
function highestBeside(heights, largest) {
  const top = heights.indexOf(largest);
  const before = [0];
  const after = [0];
  for (let n = 0; n < PARTS; n++) before.push(Math.max(before[n], heights[n]));
  for (let n = 0; n < PARTS; n++) after.push(Math.max(after[n], heights[PARTS - 1 - n]));
  let least = largest;
  for (let first = Math.max(top - PEAK.parts + 1, 0); first <= top; first++) {
    least = Math.min(least, Math.max(before[first], after[Math.max(PARTS - first - PEAK.parts, 0)]));
  }
  return least;
}

/** Ticks from zero that reach `max`. */
function valueTicks(max, whole) {
  let power = whole ? 0 : -9;
  for (;;) {
    for (const factor of [1, 2, 5]) {
      const step = Number(`${factor}e${power}`);
      if (step * 4 >= max) {
        const ticks = [];
        for (let n = 0; n <= Math.max(Math.ceil(max / step - 1e-9), 1); n++) ticks.push(Number(`${n * factor}e${power}`));
        return ticks;
      }
    }
    power += 1;
  }
}

/** What a tick of an upright axis says, short enough for the margin; `decimals` where it has as many as the others. */
function tickLabel(tick, decimals) {
  if (tick >= 1e6) return `${tick / 1e6}M`;
  if (tick >= 1e5) return `${tick / 1e3}k`;
  return grouped(decimals === null ? String(tick) : tick.toFixed(decimals));
}

/** Powers of ten from below `min` to above `max`. */
function powerTicks(min, max) {
  const ticks = [];
  const first = Math.floor(Math.log10(min));
  for (let power = first; power <= Math.max(Math.ceil(Math.log10(max)), first + 1); power++) ticks.push(Number(`1e${power}`));
  return ticks;
}

class ChartView {
  constructor(chart, place) {
    this.chart = chart;
    this.series = decoded(chart);
    this.svg = drawing("svg", { tabindex: 0, role: "img", class: "chart" });
    this.svg.setAttribute("aria-label", `${chart.title}, ${chart.unit}. Arrow keys move the cursor, plus and minus zoom, 0 shows the whole run.`);
    this.legend = element("ul", { class: "legend" });
    this.figure = element("figure", { class: "panel", id: `chart-${chart.id}` });
    const head = element("figcaption", {}, element("strong", {}, chart.title), ", ", element("span", { class: "faint" }, chart.unit));
    this.peakSays = element("span", {});
    this.peakButton = element("button", { type: "button", class: "link" });
    this.peakNote = element("p", { class: "peak-note" }, this.peakSays, this.peakButton);
    this.peakButton.addEventListener("click", () => {
      this.wholePeak = !this.wholePeak;
      changed();
    });
    this.figure.append(head, this.svg, this.peakNote, this.legend);
    if (chart.note) this.figure.append(element("p", { class: "note" }, chart.note));
    place.append(this.figure);
    this.fillLegend();
    this.listen();
    onChange(() => this.draw());
  }

  /** A button for each curve: it hides and shows it, and says its value under the cursor. */
  fillLegend() {
    const shown = this.series.filter((series) => series.shown);
    const others = this.series.filter((series) => !series.shown);
    const entry = (series) => {
      series.says = element("span", { class: "says" });
      const sample = swatch(series, this.chart.stacked);
      const button = element("button", { type: "button", "aria-pressed": String(series.shown) }, sample, series.name || this.chart.title, series.says);
      button.addEventListener("click", () => {
        series.shown = !series.shown;
        button.setAttribute("aria-pressed", String(series.shown));
        changed();
      });
      return element("li", {}, button);
    };
    this.legend.append(...shown.map(entry));
    if (others.length > 0) {
      const inner = element("ul", { class: "legend" }, ...others.map(entry));
      const words = counted(others.length, "more curve", "more curves");
      this.legend.append(element("li", { class: "others" }, element("details", {}, element("summary", {}, words), inner)));
    }
  }

  listen() {
    const timeOf = (event) => {
      const box = this.svg.getBoundingClientRect();
      return clamp(this.timeAt(event.clientX - box.left), view.from, view.to);
    };
    // Where each finger or button was pressed, and where it is.
    const pressed = new Map();
    let spread = false;
    this.svg.addEventListener("pointerdown", (event) => {
      pressed.set(event.pointerId, { x: event.clientX, now: event.clientX, at: timeOf(event) });
      spread = pressed.size > 1;
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      const own = pressed.get(event.pointerId);
      if (own) own.now = event.clientX;
      view.hover = timeOf(event);
      if (spread) this.selection = null;
      else this.selection = own && Math.abs(own.now - own.x) > 6 ? [own.at, view.hover] : null;
      if (spread && pressed.size === 2) this.stretch(...pressed.values());
      changed();
    });
    this.svg.addEventListener("pointerup", (event) => {
      const [one, two] = this.selection || [];
      if (this.selection) setWindow(Math.min(one, two), Math.max(one, two));
      else if (pressed.has(event.pointerId) && !spread) setAt(timeOf(event));
      leave(event);
    });
    const leave = (event) => {
      pressed.delete(event.pointerId);
      if (pressed.size > 0) return;
      spread = false;
      view.hover = this.selection = null;
      changed();
    };
    this.svg.addEventListener("pointercancel", leave);
    this.svg.addEventListener("pointerleave", leave);
    this.svg.addEventListener("dblclick", () => setWindow(0, data.duration));
    this.svg.addEventListener("keydown", handleKey);
  }

  /** Shows the window in which each of two fingers is still on the instant that it touched. */
  stretch(one, two) {
    const perPixel = (two.at - one.at) / (two.now - one.now);
    if (Math.abs(two.now - one.now) < 10 || !(perPixel > 0)) return;
    const left = this.svg.getBoundingClientRect().left + MARGIN.left;
    const from = one.at - (one.now - left) * perPixel;
    setWindow(from, from + (this.width - MARGIN.left - MARGIN.right) * perPixel);
  }

  timeAt(x) {
    const inner = this.width - MARGIN.left - MARGIN.right;
    return view.from + ((x - MARGIN.left) / inner) * (view.to - view.from);
  }

  x(at) {
    const inner = this.width - MARGIN.left - MARGIN.right;
    return MARGIN.left + ((at - view.from) / (view.to - view.from)) * inner;
  }

  y(value) {
    const inner = this.height - MARGIN.top - MARGIN.bottom;
    const share = this.logarithmic ? Math.log(value / this.low) / Math.log(this.top / this.low) : value / this.top;
    return MARGIN.top + inner * (1 - clamp(share, 0, 1));
  }

  draw() {
    // What is folded has no size, and is drawn when it is opened.
    if (this.figure.offsetParent === null && this.figure.clientWidth === 0) return;
    this.width = Math.max(this.figure.clientWidth, 200);
    const drawn = this.series.filter((series) => series.shown);
    // The cursor moves often, the curves seldom.
    const state = [this.width, view.from, view.to, this.wholePeak, ...this.series.map((series) => series.shown)].join();
    if (state !== this.state) this.drawCurves(drawn);
    this.state = state;
    this.drawCursor(drawn);
  }

  drawCurves(drawn) {
    this.height = this.width < 420 ? 160 : 190;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    this.svg.replaceChildren();
    const layers = this.chart.stacked ? this.stack(drawn) : null;
    this.drawAxes(this.scale(drawn, layers));
    this.notePeak();
    // A drawing within the drawing cuts off what lies outside the window.
    const size = { x: MARGIN.left, y: 0, width: this.width - MARGIN.left - MARGIN.right, height: this.height };
    const inside = drawing("svg", { ...size, viewBox: `${size.x} ${size.y} ${size.width} ${size.height}` });
    this.drawWarmUp(inside);
    if (layers) for (const layer of layers) inside.append(this.area(layer));
    else for (const series of drawn) inside.append(this.curve(series));
    this.cursor = drawing("g", {});
    this.svg.append(inside, this.cursor);
    if (this.cutsPeak) this.markPeak();
  }

  /** A band over the time at the start that figures leave out. */
  drawWarmUp(inside) {
    if (!data.warm_up || view.from >= data.warm_up) return;
    const x = this.x(view.from);
    const width = this.x(Math.min(data.warm_up, view.to)) - x;
    const band = drawing("rect", { x, y: MARGIN.top, width, height: this.height - MARGIN.top - MARGIN.bottom, class: "warm-up" });
    const title = drawing("title", {});
    title.textContent = `Warm-up: the first ${span(data.warm_up)}`;
    band.append(title);
    inside.append(band);
  }

  /** The highest value in each part of the window, the highest of all with its instant, and the lowest above zero. */
  heights(drawn, layers) {
    const found = { parts: new Array(PARTS).fill(0), max: 0, at: view.from, min: Infinity };
    const part = (view.to - view.from) / PARTS;
    const look = (from, until, value) => {
      if (value === null) return;
      if (value > found.max) [found.max, found.at] = [value, Math.max(from, view.from)];
      if (value > 0) found.min = Math.min(found.min, value);
      const first = clamp(Math.floor((from - view.from) / part), 0, PARTS - 1);
      const last = clamp(Math.ceil((until - view.from) / part) - 1, first, PARTS - 1);
      for (let n = first; n <= last; n++) found.parts[n] = Math.max(found.parts[n], value);
    };
    // A value holds until the next.
    const lookAt = (points, value) => points.forEach((point, n) => look(point[0], points[n + 1]?.[0] ?? view.to, point[value]));
    if (layers) for (const layer of layers) lookAt(layer.points, 2);
    else for (const series of drawn) lookAt(pointsIn(series, view.from, view.to), 1);
    return found;
  }

  /** Sets the scale to what is in the window, but for a peak that would flatten the rest, and gives the ticks. */
  scale(drawn, layers) {
    const { parts, max, at, min } = this.heights(drawn, layers);
    const rest = highestBeside(parts, max);
    this.peak = rest > 0 && max >= PEAK.times * rest ? { value: max, at } : null;
    this.cutsPeak = Boolean(this.peak) && !this.wholePeak;
    const highest = this.cutsPeak ? rest : max;
    this.logarithmic = Boolean(this.chart.logarithmic) && highest > MAGNITUDES * min;
    const ticks = this.logarithmic ? powerTicks(min, highest) : valueTicks(highest || 1, this.chart.whole);
    this.low = ticks[0];
    this.top = ticks[ticks.length - 1];
    return ticks;
  }

  /** Says of a peak that is cut off how high it is, and lets the reader see it whole. */
  notePeak() {
    this.peakNote.hidden = !this.peak;
    if (!this.peak) return;
    const words = ` peak of ${amount(this.peak.value, this.chart.whole)} at ${moment(this.peak.at, true)}`;
    this.peakSays.textContent = this.cutsPeak ? `A${words} is cut off: ` : `Scaled to a${words}: `;
    this.peakButton.textContent = this.cutsPeak ? "show full peak" : "clip it";
  }

  /** Marks where the peak leaves the chart. */
  markPeak() {
    const x = this.x(this.peak.at);
    const left = x > this.width / 2;
    const text = amount(this.peak.value, this.chart.whole);
    const words = left ? `${text} \u25b2` : `\u25b2 ${text}`;
    this.label(x + (left ? -3 : 3), MARGIN.top + 9, words, left ? "end" : "start", "peak");
  }

  drawAxes(ticks) {
    const bottom = this.height - MARGIN.bottom;
    // All ticks have the decimals of the one that needs most.
    const decimals = Math.max(...ticks.map((tick) => (String(tick).includes("e-") ? 9 : (String(tick).split(".")[1] || "").length)));
    for (const tick of ticks) {
      const y = this.y(tick);
      this.svg.append(drawing("line", { x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y, class: "grid" }));
      this.label(MARGIN.left - 6, y + 4, tickLabel(tick, this.logarithmic ? null : Math.min(decimals, 6)), "end");
    }
    const { ticks: times, step } = timeTicks(view.from, view.to, Math.max(Math.floor(this.width / 80), 2));
    for (const at of times) {
      const x = this.x(at);
      this.svg.append(drawing("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, class: "tick" }));
      if (x > MARGIN.left + 14 && x < this.width - 22) this.label(x, bottom + 17, timeLabel(at, step), "middle");
    }
    this.label(MARGIN.left - 6, bottom + 17, "UTC", "end");
  }

  label(x, y, text, anchor, sort) {
    const label = drawing("text", { x, y, "text-anchor": anchor, class: sort ?? "" });
    label.textContent = text;
    this.svg.append(label);
  }

  /** A curve as a path; where many points share a column of pixels, their extremes stand for them. */
  curve(series) {
    let path = "";
    let open = false;
    let column = null;
    const flush = () => {
      if (!column) return;
      const x = column.x.toFixed(1);
      // A value holds until the next: nothing is shown before it happens.
      path += open ? `H${x}` : `M${x} ${column.first}`;
      if (column.high !== column.low) path += `V${column.high}V${column.low}`;
      path += `V${column.last}`;
      open = true;
      column = null;
    };
    const points = pointsIn(series, view.from, view.to);
    for (const [at, value] of points) {
      if (value === null) {
        flush();
        if (open) path += `H${this.x(at).toFixed(1)}`;
        open = false;
        continue;
      }
      const x = this.x(at);
      const y = Number(this.y(value).toFixed(1));
      if (column && x - column.x < 0.7) {
        column.high = Math.min(column.high, y);
        column.low = Math.max(column.low, y);
        column.last = y;
      } else {
        flush();
        column = { x, first: y, high: y, low: y, last: y };
      }
    }
    flush();
    const held = series.sampled && points.length > 0 ? points[points.length - 1][0] + series.every : Infinity;
    if (open) path += `H${this.x(Math.min(view.to, data.duration, held)).toFixed(1)}`;
    const made = drawing("path", { d: path || "M0 0", class: series.faint ? "curve behind" : "curve" });
    made.style.stroke = color(series.color);
    made.style.strokeDasharray = series.dash;
    return made;
  }

  /** Curves laid on top of each other: for each, its lower and upper edge at every instant at which one changes. */
  stack(drawn) {
    const instants = new Set([view.from, view.to]);
    for (const series of drawn) for (const [at] of pointsIn(series, view.from, view.to)) instants.add(clamp(at, view.from, view.to));
    let times = [...instants].sort((one, two) => one - two);
    if (times.length > 3000) times = Array.from({ length: 1500 }, (_, n) => view.from + ((view.to - view.from) * n) / 1499);
    const floor = times.map(() => 0);
    return drawn.map((series) => ({
      series,
      points: times.map((at, n) => {
        const low = floor[n];
        floor[n] += valueAt(series, at) ?? 0;
        return [at, low, floor[n]];
      }),
    }));
  }

  area(layer) {
    const there = [];
    const back = [];
    layer.points.forEach(([at, low, high], n) => {
      const x = this.x(at).toFixed(1);
      const next = this.x(layer.points[n + 1]?.[0] ?? at).toFixed(1);
      there.push(`${x} ${this.y(high).toFixed(1)}`, `${next} ${this.y(high).toFixed(1)}`);
      back.push(`${x} ${this.y(low).toFixed(1)}`, `${next} ${this.y(low).toFixed(1)}`);
    });
    const points = [...there, ...back.reverse()].join(" ");
    const made = drawing("polygon", { points, class: "area" });
    made.style.fill = color(layer.series.color);
    const pattern = patternOf(layer.series);
    if (!pattern) return made;
    const both = drawing("g", {});
    both.append(made, drawing("polygon", { points, class: "pattern", fill: `url(#pattern-${pattern})` }));
    return both;
  }

  /** The line of the instant and what each curve says there. */
  drawCursor(drawn) {
    const bottom = this.height - MARGIN.bottom;
    const at = view.hover ?? view.at;
    this.cursor.replaceChildren();
    if (this.selection) {
      const [left, right] = this.selection.map((end) => this.x(end)).sort((one, two) => one - two);
      const size = { x: left, y: MARGIN.top, width: right - left, height: bottom - MARGIN.top };
      this.cursor.append(drawing("rect", { ...size, class: "selection" }));
    }
    if (at >= view.from && at <= view.to) {
      const x = this.x(at);
      this.cursor.append(drawing("line", { x1: x, x2: x, y1: MARGIN.top, y2: bottom, class: "cursor" }));
      for (const series of this.chart.stacked ? [] : drawn) {
        const value = valueAt(series, at);
        if (value === null || series.faint) continue;
        const dot = drawing("circle", { cx: x, cy: this.y(value), r: 3 });
        dot.style.fill = color(series.color);
        this.cursor.append(dot);
      }
    }
    for (const series of this.series) series.says.textContent = ` ${amount(valueAt(series, at), this.chart.whole)}`;
  }
}

/** Buttons that move and stretch the window. */
function windowButtons() {
  const button = (id, text, label, action) => {
    const made = element("button", { type: "button", id, "aria-label": label, title: label }, text);
    made.addEventListener("click", action);
    return made;
  };
  return [
    button("left", "\u2190", "Show earlier", () => pan(-0.5)),
    button("zoom-out", "\u2212", "Zoom out", () => zoom(2)),
    button("zoom-in", "+", "Zoom in", () => zoom(0.5)),
    button("right", "\u2192", "Show later", () => pan(0.5)),
    button("whole", "Whole run", "Show the whole run", () => setWindow(0, data.duration)),
  ];
}

/** Says which part of the run is shown. */
function windowSays() {
  const says = element("span", { class: "window" });
  onChange(() => {
    says.textContent = `Shown: ${moment(view.from)} to ${moment(view.to)} (${span(view.to - view.from)})`;
  });
  return says;
}

/** When the curves of the first chart together are first at their highest. */
function highestInstant() {
  const series = data.charts[0] ? decoded(data.charts[0]) : [];
  const instants = [...new Set(series.flatMap((own) => own.times))].sort((one, two) => one - two);
  const sum = (at) => series.reduce((total, own) => total + (valueAt(own, at) ?? 0), 0);
  const all = instants.map(sum);
  return all.length > 0 ? instants[all.indexOf(all.reduce((one, two) => Math.max(one, two)))] : 0;
}

const chartPlace = document.getElementById("panels");
// What the reader sees first; a page that folds nothing has no place for it.
const firstPlace = document.getElementById("first-panels");
const FIRST = ["nodes", "pending"];
if (firstPlace) for (const id of FIRST) for (const chart of data.charts.filter((own) => own.id === id)) new ChartView(chart, firstPlace);
const others = data.charts.filter((chart) => !firstPlace || !FIRST.includes(chart.id));
if (chartPlace) for (const chart of others) new ChartView(chart, chartPlace);
const moreCharts = document.querySelector("#charts > summary .short");
if (moreCharts) moreCharts.textContent = others.map((chart) => chart.title).join(", ");
// A page without a replay has these alone.
const zoomPlace = document.getElementById("zoom");
if (zoomPlace) {
  zoomPlace.append(element("div", { class: "row" }, ...windowButtons(), windowSays()));
  view.at = highestInstant();
}
changed();
