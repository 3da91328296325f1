// Asks for what a state comes to. Each move takes the place of the one before, whose simulations end.

/** The page's name: what another page asks for goes on. */
const pageName = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
/** What is being asked, and when what led to it was moved. */
let asking = null;
let askSoon = false;
let movedAt = performance.now();

const plainState = (values) => Object.fromEntries(values);

/** Asks once before the next frame, however often something moves until then. */
function ask() {
  movedAt = performance.now();
  numbers.classList.add("waits-for");
  if (askSoon) return;
  askSoon = true;
  // A page in the background has no frames.
  const soon = document.hidden ? (then) => setTimeout(then, 0) : requestAnimationFrame;
  soon(() => {
    askSoon = false;
    run();
  });
}

async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal, cache: "no-store" });
}

async function run() {
  asking?.abort();
  const own = (asking = new AbortController());
  const from = movedAt;
  const state = { own: new Map(), today: todayCharts, from, held: null };
  document.body.dataset.state = "asked";
  delete document.body.dataset.firstMs;
  try {
    const answer = await post("run", { page: pageName, values: plainState(moved), same_circumstances: sameCircumstances }, own.signal);
    if (!answer.ok) return showFailure((await answer.json()).why);
    for await (const [name, value] of events(answer.body)) {
      if (own.signal.aborted) return;
      take(name, value, state);
    }
  } catch (error) {
    if (!own.signal.aborted) showFailure(`lost the connection to nodecast: restart it and open the new URL (${error.message})`);
  }
}

/** Server-sent events as they come. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [name, content] = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      yield [name.slice("event: ".length), JSON.parse(content.slice("data: ".length))];
    }
  }
}

function take(name, value, state) {
  const actions = {
    figures: () => {
      state.held = value.held;
      showFigures(value.held);
      showProgress(value.held, state);
      if (document.body.dataset.firstMs === undefined) document.body.dataset.firstMs = (performance.now() - state.from).toFixed(0);
      document.body.dataset.seeds = value.held.seeds;
      // How long the program's threads took to let go of the state before.
      document.body.dataset.waitedMs = Math.max(value.waited_ms, Number(document.body.dataset.waitedMs ?? 0));
      showProgress(value.held, state);
    },
    curves: () => {
      const charts = new Map(value.data.charts.map((chart) => [chart.id, chart]));
      if (value.of === "own") state.own = charts;
      else state.today = charts;
      // With nothing moved the curves of today are the state's own.
      showCurves(state.own.size > 0 || moved.size > 0 ? state.own : charts, state.today);
    },
    setting: () => showSetting(value),
    done: () => (document.body.dataset.state = "done"),
    failed: () => showFailure(value.why),
  };
  actions[name]?.();
}

function showProgress(held, state) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" }, element("span", { style: `width:${(held.seeds / held.planned) * 100}%` }));
  const first = document.body.dataset.firstMs === undefined ? "" : `, first answer after ${document.body.dataset.firstMs}\u00a0ms`;
  const against = moved.size === 0 ? "today" : sameCircumstances ? "compared with today's settings under the same load and faults" : "compared with today";
  statusLine.classList.remove("failed");
  statusLine.replaceChildren(bar, `${held.seeds} of ${counted(held.planned, "seed", "seeds")}, ${against}, seed by seed${first}`);
  state.shown = true;
}

function showFailure(why) {
  document.body.dataset.state = "failed";
  statusLine.classList.add("failed");
  statusLine.textContent = why;
}

function showLinks() {
  const values = encodeURIComponent(JSON.stringify(plainState(moved)));
  const link = (path, text) => element("a", { href: path, target: "_blank", rel: "noreferrer" }, text);
  const report = link(`report?values=${values}`, "Full report for the first seed");
  const links = moved.size > 0 ? [link(`replay?values=${values}`, "Replay next to today"), report] : [report];
  document.getElementById("more").replaceChildren(...links);
}

function keep() {
  if (moved.size === 0) return;
  const cost = numbers.querySelector("[data-figure=cost_per_month] .value")?.textContent;
  kept.push({ name: nameFor(moved), values: new Map(moved), cost: cost && !numbers.classList.contains("waits-for") ? `${cost} a month` : "" });
  told();
}

async function write() {
  const list = kept.length > 0 ? kept : [{ name: "changed", values: moved }];
  const button = document.getElementById("write");
  button.disabled = true;
  try {
    const answer = await post("write", { entries: list.map((own) => ({ name: own.name, values: plainState(own.values) })) });
    showWritten(await answer.json());
  } catch (error) {
    showWritten({ why: `nodecast no longer answers (${error.message})` });
  }
  placeControls();
  document.getElementById("written").scrollIntoView({ block: "nearest" });
}

const actions = { undo, redo, reset: () => goTo(new Map()), keep, write };
for (const [id, action] of Object.entries(actions)) document.getElementById(id).addEventListener("click", action);

addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input[type=text], textarea");
  if (typing) return;
  const key = event.key.toLowerCase();
  const pressed = event.ctrlKey || event.metaKey;
  if (pressed && key === "z") (event.shiftKey ? redo : undo)();
  else if (pressed && key === "y") redo();
  else if (!pressed && !event.altKey && key === "k") keep();
  else return;
  event.preventDefault();
});
addEventListener("hashchange", () => {
  readAddress();
  told();
});

let asked = null;
onState(placeControls);
onState(showKept);
onState(showLinks);
onState(() => {
  // Names in the list concern no simulation.
  const state = `${encoded(moved)} ${sameCircumstances}`;
  if (state !== asked) ask();
  asked = state;
});
details.append(setting, tables);
if (data.warnings.length > 0) details.append(element("details", {}, element("summary", {}, counted(data.warnings.length, "warning", "warnings")), element("ul", {}, ...data.warnings.map((own) => element("li", {}, own)))));
addEventListener("resize", measureTop);
readAddress();
drawControls();
told();
