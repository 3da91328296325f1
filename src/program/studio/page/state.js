// What stands elsewhere than today, how it came so, and its address.

/** The controls by their names. */
const controls = new Map(data.controls.map((control) => [control.id, control]));
/** What stands elsewhere than today: values by the names of controls. */
let moved = new Map();
/** Whether today is held against it under the same load and faults. */
let sameCircumstances = false;
/** States that were kept, each with its name. */
let kept = [];
const before = [];
const after = [];
/** What was moved last, and when: moves of one slider in a row are one step. */
let lastMove = { id: null, at: 0 };
const STEPS_MAX = 200;
const stateListeners = [];

/** Calls `follow` whenever the state changes. */
const onState = (follow) => stateListeners.push(follow);

const valueOf = (id) => moved.get(id) ?? controls.get(id).today;
const stopOf = (control, value) => control.stops.find((stop) => stop.value === value);

/** A value of a control for people. */
function labelOf(control, value) {
  if (control.form !== "chips") return stopOf(control, value)?.label ?? value;
  return value.split(",").map((own) => stopOf(control, own)?.label ?? own).join(", ");
}

/** Whether a control has such a value: addresses are typed by people, too. */
function fits(control, value) {
  if (control.form !== "chips") return Boolean(stopOf(control, value));
  const parts = value.split(",");
  return parts.length > 0 && parts.every((own) => stopOf(control, own));
}

const snapshot = () => ({ moved: new Map(moved), same: sameCircumstances });

function told() {
  writeAddress();
  for (const follow of stateListeners) follow();
}

function remember(id) {
  const now = performance.now();
  const goesOn = id !== null && lastMove.id === id && now - lastMove.at < 700;
  lastMove = { id, at: now };
  if (goesOn) return;
  before.push(snapshot());
  if (before.length > STEPS_MAX) before.shift();
  after.length = 0;
}

/** Moves a control to a value. */
function move(id, value) {
  if (valueOf(id) === value) return;
  remember(id);
  if (value === controls.get(id).today) moved.delete(id);
  else moved.set(id, value);
  told();
}

/** Goes to a whole state. */
function goTo(values, same) {
  remember(null);
  moved = new Map([...values].filter(([id, value]) => controls.has(id) && fits(controls.get(id), value) && value !== controls.get(id).today));
  sameCircumstances = same ?? sameCircumstances;
  told();
}

function setSame(same) {
  remember(null);
  sameCircumstances = same;
  told();
}

function step(from, to) {
  const state = from.pop();
  if (!state) return;
  to.push(snapshot());
  ({ moved, same: sameCircumstances } = state);
  lastMove = { id: null, at: 0 };
  told();
}

const undo = () => step(before, after);
const redo = () => step(after, before);

// The address: `#consolidate-after.NodePool-spot=10m&keep=calm|consolidate-after.NodePool-spot=10m`.

const encoded = (values) => new URLSearchParams([...values]).toString();

/** Browsers let a page change its address only so often: the last change of a quick row counts. */
const ADDRESS_EVERY = 300;
let addressAt = -ADDRESS_EVERY;
let addressSoon = null;

function writeAddress() {
  if (addressSoon !== null) return;
  const wait = Math.max(addressAt + ADDRESS_EVERY - performance.now(), 0);
  const put = () => {
    addressSoon = null;
    addressAt = performance.now();
    putAddress();
  };
  if (wait > 0) addressSoon = setTimeout(put, wait);
  else put();
}

function putAddress() {
  const parts = new URLSearchParams([...moved]);
  if (sameCircumstances) parts.set("same", "1");
  for (const own of kept) parts.append("keep", `${own.name}|${encoded(own.values)}`);
  const text = parts.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

/** Takes over the state of the address; what this scenario does not have is left out. */
function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  moved = new Map();
  kept = [];
  sameCircumstances = parts.get("same") === "1";
  for (const [id, value] of parts) {
    if (controls.has(id) && fits(controls.get(id), value) && value !== controls.get(id).today) moved.set(id, value);
    if (id !== "keep") continue;
    const [name, rest] = [value.slice(0, value.indexOf("|")), value.slice(value.indexOf("|") + 1)];
    const values = new Map([...new URLSearchParams(rest)].filter(([own, at]) => controls.has(own) && fits(controls.get(own), at)));
    if (values.size > 0) kept.push({ name, values });
  }
}

/** What a state is, in words. */
function words(values) {
  return [...values].map(([id, value]) => `${controls.get(id).group}, ${controls.get(id).label}: ${labelOf(controls.get(id), value)}`);
}

/** A name for a new entry of the list. */
function nameFor(values) {
  const [first] = values;
  const control = controls.get(first[0]);
  const label = labelOf(control, first[1]);
  const plain = `${control.label} ${label.length > 16 ? "changed" : label}`.replace(/[|&=#]/g, " ");
  let name = values.size > 1 ? `${plain} and ${values.size - 1} more` : plain;
  for (let n = 2; kept.some((own) => own.name === name); n++) name = `${plain} ${n}`;
  return name;
}
