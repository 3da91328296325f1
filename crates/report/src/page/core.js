// What the parts of the page share: the data, the clock, the window of time that is shown, numbers and colours.

const data = JSON.parse(document.getElementById("data").textContent);
/** Tenths of a second in a second. */
const SECOND = 10;
/** The part of the run that charts show, and the instant that the replay shows; all in tenths of a second. */
const view = { from: 0, to: Math.max(data.duration, 1), at: 0, hover: null };
const listeners = [];
/** Starts and stops the replay, where a page has one. */
let playOrPause = null;
let redrawAsked = false;

/** Calls `draw` whenever the window, the instant or the surroundings change. */
function onChange(draw) {
  listeners.push(draw);
}

/** Draws everything anew before the next frame, however often it is called until then. */
function changed() {
  if (redrawAsked) return;
  redrawAsked = true;
  requestAnimationFrame(() => {
    redrawAsked = false;
    for (const draw of listeners) draw();
  });
}

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

/** Shows the time from `from` to `to`, at least ten seconds of it. */
function setWindow(from, to) {
  const length = clamp(to - from, Math.min(10 * SECOND, data.duration), data.duration);
  view.from = clamp(from, 0, data.duration - length);
  view.to = view.from + length;
  changed();
}

/** Makes the window `factor` times as long, around `centre`. */
function zoom(factor, centre) {
  const middle = centre ?? (view.at >= view.from && view.at <= view.to ? view.at : (view.from + view.to) / 2);
  const length = (view.to - view.from) * factor;
  const share = (middle - view.from) / (view.to - view.from);
  setWindow(middle - share * length, middle + (1 - share) * length);
}

/** Moves the window by a share of its length. */
function pan(share) {
  const step = (view.to - view.from) * share;
  setWindow(view.from + step, view.to + step);
}

/** Shows the cluster at `at`; the window follows. */
function setAt(at) {
  view.at = clamp(at, 0, data.duration);
  const length = view.to - view.from;
  if (view.at < view.from || view.at > view.to) setWindow(view.at - length / 2, view.at + length / 2);
  changed();
}

// Decoding. The page is small because numbers are written as runs and differences.

/** `[[5,3],7]` means 5, 5, 5, 7. */
function runs(encoded) {
  const values = [];
  for (const entry of encoded) {
    if (Array.isArray(entry)) for (let n = 0; n < entry[1]; n++) values.push(entry[0]);
    else values.push(entry);
  }
  return values;
}

/** Values of which each was written as the difference to the one before. */
function sums(encoded) {
  let value = 0;
  return runs(encoded).map((difference) => (value += difference));
}

/** The position of the last of the ascending `times` that is not after `at`; -1 if all are. */
function lastUntil(times, at) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Words.

const start = Date.parse(data.start);
const pad = (number) => String(number).padStart(2, "0");

/** The calendar day of an instant: `27 Nov`. */
function day(at) {
  const date = new Date(start + at * 100);
  const month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][date.getUTCMonth()];
  return `${date.getUTCDate()} ${month}`;
}

/** The time of day of an instant: `14:05`, or `14:05:30` where seconds matter. */
function clock(at, seconds) {
  const date = new Date(start + Math.floor(at) * 100);
  const minutes = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
  return seconds ? `${minutes}:${pad(date.getUTCSeconds())}` : minutes;
}

/** Whether the run is more than one calendar day: then an instant needs its day. */
const manyDays = day(0) !== day(data.duration);

/** An instant in words: `14:05`, in a run of several days `27 Nov 14:05`. */
function moment(at, seconds) {
  return `${manyDays ? `${day(at)} ` : ""}${clock(at, seconds)}`;
}

/** A duration without parts that are zero: `2h03m`, `4m05s`, `4m`, `12 s`; it never breaks between lines. */
function span(tenths) {
  const seconds = Math.round(tenths / SECOND);
  if (seconds < 60) return `${seconds}\u00a0s`;
  const parts = (large, unit, small, smaller) => `${large}${unit}${small === 0 ? "" : pad(small) + smaller}`;
  if (seconds < 3600) return parts(Math.floor(seconds / 60), "m", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return parts(Math.floor(minutes / 60), "h", minutes % 60, "m");
  const hours = Math.round(seconds / 3600);
  return parts(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** A text in which numbers stay with their units. */
function unbroken(text) {
  return text.replace(/(\d) (?=(?:s|ms|h|%|kB|MB|GB|TB|KiB|MiB|GiB|USD|CNY)(?![\w/]))/g, "$1\u00a0").replace(/(\d[dhm]) (?=\d+[hms]\b)/g, "$1\u00a0");
}

/** A value of a chart: three or four digits where it is not whole, thousands grouped. */
function amount(value, whole) {
  if (value === null || value === undefined) return "\u2013";
  const size = Math.abs(value);
  if (whole || size >= 1000) return grouped(value.toFixed(0));
  return String(Number(size >= 100 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toPrecision(3)));
}

/** A decimal with commas between its thousands. */
function grouped(decimal) {
  const [before, after] = decimal.split(".");
  const thousands = before.replace(/\B(?=(\d{3})+$)/g, ",");
  return after ? `${thousands}.${after}` : thousands;
}

const counted = (number, one, many) => `${amount(number, true)} ${number === 1 ? one : many}`;

// Colours: blue, vermilion, green, and purple of Okabe and Ito, then four like them, which have a pattern. Colour-blind readers tell apart
// all that have one pattern. All stand out from white and from near-black by 3 to 1 or more.

const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#c4689b", "#4a86c8", "#b8692a", "#3a8f6d", "#a8618f"];
/** Colours that have one pattern. */
const ALIKE = 4;
const NO_COLOR = "#848d97";

/** The colour of a thing by its number; nothing is grey. Further ones are equally light, whatever their hue. */
function color(number) {
  if (number === null || number === undefined) return NO_COLOR;
  if (number < PALETTE.length) return PALETTE[number];
  return `oklch(0.6 0.12 ${Math.round((number * 137.5) % 360)})`;
}

/** The value of a style's variable in the light or dark that holds now. */
function shade(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** `text` cut to what a pen writes in `width` pixels. */
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text.slice(0, -1);
  while (kept.length > 2 && pen.measureText(`${kept}\u2026`).width > width) kept = kept.slice(0, -1);
  return `${kept}\u2026`;
}

/** An element with text, attributes and children; text is never markup. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    // The page's policy lets no attribute state a style; what a script sets goes another way.
    if (name === "style") made.style.cssText = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** The same for drawings. */
function drawing(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Round instants for the ticks of a time axis, `most` at the most. */
function timeTicks(from, to, most) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const step = (steps.find((own) => (to - from) / SECOND / own <= most) ?? Math.ceil((to - from) / SECOND / most)) * SECOND;
  // Ticks stand at round times of day, not at round times since the start.
  const shift = (start / 100) % step;
  const ticks = [];
  for (let at = Math.ceil((from + shift) / step) * step - shift; at <= to; at += step) ticks.push(at);
  return { ticks, step };
}

/** What a tick says: the day at midnight, else the time of day. */
function timeLabel(at, step) {
  const midnight = (start / 100 + at) % (86400 * SECOND) === 0;
  return midnight && manyDays ? day(at) : clock(at, step < 60 * SECOND);
}

/** Moves the instant and the window by keys; whether the key was one of them. */
function handleKey(event) {
  const step = ((view.to - view.from) / 100) * (event.shiftKey ? 10 : 1);
  const actions = {
    ArrowLeft: () => setAt(view.at - step),
    ArrowRight: () => setAt(view.at + step),
    Home: () => setAt(view.from),
    End: () => setAt(view.to),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    0: () => setWindow(0, data.duration),
    Escape: () => setWindow(0, data.duration),
    " ": playOrPause,
  };
  const action = event.ctrlKey || event.metaKey || event.altKey ? null : actions[event.key];
  if (!action) return false;
  event.preventDefault();
  action();
  return true;
}

addEventListener("resize", changed);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
