// Charts over one window of time, with one cursor. Drag or spread two fingers to zoom, click to choose the instant of the
// replay.

const MARGIN = { left: 48, right: 10, top: 8, bottom: 22 };

/** How curves of one colour are told apart, in order; those that stand behind another have a pattern of their own. */
const DASHES = ["none", "1.5 3.5", "9 3 2 3", "12 3"];
const BEHIND = "5 3";

/** A chart's curves, ready to be looked up: ascending times and a value for each. */
function decoded(chart) {
  const ofColor = new Map();
  return chart.series.map((series) => {
    const values = runs(series.values);
    const times = series.at ? sums(series.at) : values.map((_, n) => n * series.every);
    const before = ofColor.get(series.color) ?? 0;
    if (!series.faint) ofColor.set(series.color, before + 1);
    const dash = series.faint ? BEHIND : DASHES[before % DASHES.length];
    return { ...series, values, times, dash, steps: Boolean(series.at), shown: !series.hidden };
  });
}

/** What a curve looks like, in its legend. */
function swatch(series, stacked) {
  if (stacked) return element("span", { class: "swatch", style: `--own:${color(series.color)}` });
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
  if (!series.steps && at - series.times[position] > series.every) return null;
  return series.values[position];
}

/** The points of a curve within the window, the ones just outside included. */
function pointsIn(series, from, to) {
  const first = Math.max(lastUntil(series.times, from), 0);
  const last = Math.min(lastUntil(series.times, to) + 1, series.times.length - 1);
  const points = [];
  for (let n = first; n <= last; n++) points.push([series.times[n], series.values[n]]);
  return points;
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
    this.figure.append(head, this.svg, this.legend);
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
    this.width = Math.max(this.figure.clientWidth, 200);
    const drawn = this.series.filter((series) => series.shown);
    // The cursor moves often, the curves seldom.
    const state = [this.width, view.from, view.to, ...this.series.map((series) => series.shown)].join();
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
    // A drawing within the drawing cuts off what lies outside the window.
    const size = { x: MARGIN.left, y: 0, width: this.width - MARGIN.left - MARGIN.right, height: this.height };
    const inside = drawing("svg", { ...size, viewBox: `${size.x} ${size.y} ${size.width} ${size.height}` });
    if (layers) for (const layer of layers) inside.append(this.area(layer));
    else for (const series of drawn) inside.append(this.curve(series));
    this.cursor = drawing("g", {});
    this.svg.append(inside, this.cursor);
  }

  /** Sets the scale to what is in the window and gives the ticks. */
  scale(drawn, layers) {
    let max = 0;
    let min = Infinity;
    const look = (value) => {
      if (value === null) return;
      max = Math.max(max, value);
      if (value > 0) min = Math.min(min, value);
    };
    if (layers) for (const layer of layers) for (const point of layer.points) look(point[2]);
    else for (const series of drawn) for (const point of pointsIn(series, view.from, view.to)) look(point[1]);
    this.logarithmic = Boolean(this.chart.logarithmic) && max > 0;
    const ticks = this.logarithmic ? powerTicks(min, max) : valueTicks(max || 1, this.chart.whole);
    this.low = ticks[0];
    this.top = ticks[ticks.length - 1];
    return ticks;
  }

  drawAxes(ticks) {
    const bottom = this.height - MARGIN.bottom;
    // All ticks have the decimals of the one that needs most.
    const decimals = Math.max(...ticks.map((tick) => (String(tick).includes("e-") ? 9 : (String(tick).split(".")[1] || "").length)));
    for (const tick of ticks) {
      const y = this.y(tick);
      this.svg.append(drawing("line", { x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y, class: "grid" }));
      this.label(MARGIN.left - 6, y + 4, grouped(this.logarithmic ? String(tick) : tick.toFixed(Math.min(decimals, 6))), "end");
    }
    const { ticks: times, step } = timeTicks(view.from, view.to, Math.max(Math.floor(this.width / 80), 2));
    for (const at of times) {
      const x = this.x(at);
      this.svg.append(drawing("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, class: "tick" }));
      if (x > MARGIN.left + 14 && x < this.width - 22) this.label(x, bottom + 17, timeLabel(at, step), "middle");
    }
    this.label(MARGIN.left - 6, bottom + 17, "UTC", "end");
  }

  label(x, y, text, anchor) {
    const label = drawing("text", { x, y, "text-anchor": anchor });
    label.textContent = text;
    this.svg.append(label);
  }

  /** A curve as a path; where many points share a column of pixels, their extremes stand for them. */
  curve(series) {
    let path = "";
    let open = false;
    let column = null;
    let lastY = 0;
    const flush = () => {
      if (!column) return;
      const x = column.x.toFixed(1);
      if (!open) path += `M${x} ${column.first}`;
      else if (series.steps) path += `H${x}`;
      else path += `L${x} ${column.first}`;
      if (column.high !== column.low) path += `V${column.high}V${column.low}`;
      if (series.steps || column.high !== column.low) path += `V${column.last}`;
      lastY = column.last;
      open = true;
      column = null;
    };
    const points = pointsIn(series, view.from, view.to);
    for (const [at, value] of points) {
      if (value === null) {
        flush();
        if (open && series.steps) path += `H${this.x(at).toFixed(1)}`;
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
    // A step holds until the end of the run.
    if (open && series.steps) path += `H${this.x(Math.min(view.to, data.duration)).toFixed(1)}V${lastY}`;
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
    const made = drawing("polygon", { points: [...there, ...back.reverse()].join(" "), class: "area" });
    made.style.fill = color(layer.series.color);
    return made;
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

const chartPlace = document.getElementById("panels");
if (chartPlace) for (const chart of data.charts) new ChartView(chart, chartPlace);
// A page without a replay has these alone.
const zoomPlace = document.getElementById("zoom");
if (zoomPlace) zoomPlace.append(element("div", { class: "row" }, ...windowButtons(), windowSays()));
changed();
