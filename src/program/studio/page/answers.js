// What a state comes to: the big numbers, the curves with today's behind them, and everything below.

const numbers = document.getElementById("numbers");
const statusLine = document.getElementById("status");
const details = document.getElementById("details");
/** Words of the big numbers, by the names of figures. */
const QUESTIONS = {
  cost_per_month: "Cost per month",
  pending_p99: "Pods wait for a node, p99",
  unavailable_pod_minutes: "Replicas missing",
  evictions: "Pods evicted",
};
const SAYS = { better: "better", worse: "worse", unsure: "not significant", same: "no change", other: "" };

const unitOf = (name) => (name === "unavailable_pod_minutes" ? "\u00a0pod-min" : name === "evictions" ? "\u00a0pods" : "");
const say = (name, text) => (text === "\u2013" ? text : unbroken(text) + unitOf(name));

/** A big number against today's. */
function numberCard(line, seeds) {
  const own = (kind, text, more) => element("p", { class: `${kind} ${more ?? ""}` }, text);
  const change = line.verdict === "same" ? "no change" : [line.difference ? say(line.name, line.difference) : "", line.relative ? `(${unbroken(line.relative)})` : ""].filter(Boolean).join(" ");
  const doubt = line.verdict === "unsure" ? ": may be none" : "";
  const spread = line.verdict === "same" ? "" : line.spread ? unbroken(line.spread) + doubt : "one seed";
  const card = element(
    "div",
    { class: "number" },
    own("question", QUESTIONS[line.name] ?? sentence(line.label)),
    own("value", say(line.name, line.own.text)),
    own("against", `today ${say(line.name, line.today.text)}`),
    own("change", change, line.verdict),
    own("spread", spread),
  );
  card.dataset.figure = line.name;
  card.dataset.value = line.own.value ?? "";
  card.dataset.today = line.today.value ?? "";
  card.dataset.seeds = seeds;
  return card;
}

function showFigures(held) {
  numbers.replaceChildren(...held.figures.filter((line) => line.first).map((line) => numberCard(line, held.seeds)));
  numbers.classList.remove("waits-for");
  measureTop();
  showTables(held);
}

/** Controls stay below the numbers, however high these are. */
function measureTop() {
  const below = `${numbers.offsetHeight + 8}px`;
  if (document.documentElement.style.getPropertyValue("--below") !== below) document.documentElement.style.setProperty("--below", below);
}

function table(heads, rows) {
  const cell = (name) => (text, n) => element(name, { class: n > 0 ? "figure" : null }, ...(Array.isArray(text) ? text : [text]));
  const line = (name) => (cells) => element("tr", {}, ...cells.map(cell(name)));
  const scroll = element("div", { class: "scroll" }, element("table", {}, element("thead", {}, line("th")(heads)), element("tbody", {}, ...rows.map(line("td")))));
  hintAtScroll(scroll);
  return scroll;
}

const tables = element("div", {});
const setting = element("div", {});

function showTables(held) {
  // What was open stays open.
  const open = new Set([...tables.querySelectorAll("details[open]")].map((own) => own.dataset.part));
  const part = (name, title, content) => {
    const own = element("details", { "data-part": name }, element("summary", {}, title), content);
    own.open = open.has(name);
    return own;
  };
  const said = (line) => element("span", { class: line.verdict }, [line.difference ?? "\u2013", line.relative ? ` (${line.relative})` : "", SAYS[line.verdict] ? ` ${SAYS[line.verdict]}` : ""].map(unbroken).join(""));
  const figures = table(["Metric", "Today", "Changed", "Difference", "95% interval"], held.figures.map((line) => [sentence(line.label), unbroken(line.today.text), unbroken(line.own.text), [said(line)], unbroken(line.spread ?? "")]));
  const firsts = held.figures.filter((line) => line.first);
  const heads = ["Seed", ...firsts.flatMap((line) => [QUESTIONS[line.name] ?? line.label, "today"])];
  const seeds = table(heads, held.rows.map((row) => [String(row.seed), ...row.own.flatMap((own, n) => [unbroken(own.text), unbroken(row.today[n].text)])]));
  held.rows.forEach((row, n) => {
    const own = seeds.querySelectorAll("tbody tr")[n];
    own.dataset.seed = row.seed;
    own.dataset.values = JSON.stringify(row.own.map((one) => one.value));
  });
  const parts = [part("figures", "All metrics", figures), part("seeds", "By seed", seeds)];
  if (held.objectives.length > 0) {
    const met = ([own, all]) => `${own} of ${all}`;
    tables.replaceChildren(element("h2", {}, "Objectives, met by seeds"), table(["Objective", "Today", "Changed"], held.objectives.map((own) => [sentence(own.name), met(own.today), met(own.own)])), ...parts);
  } else tables.replaceChildren(...parts);
}

/** What changes in the manifests, and the command that repeats the first seed. */
function showSetting({ changes, command }) {
  const lines = [];
  let object = "";
  for (const own of changes) {
    if (own.object !== object) lines.push(element("span", {}, `${own.object}\n`));
    object = own.object;
    if (own.before !== null) lines.push(element("span", { class: "removed" }, `  - ${own.path}: ${own.before}\n`));
    if (own.after !== null) lines.push(element("span", { class: "added" }, `  + ${own.path}: ${own.after}\n`));
  }
  const seed = `seed ${data.seed}`;
  const head = changes.length > 0 ? [element("h2", {}, "In the manifests"), element("pre", { class: "diff wrap" }, ...lines)] : [];
  setting.replaceChildren(...head, element("h2", {}, `Command to reproduce ${seed}`), copyable(command));
}

/** A command with a button that copies it. */
function copyable(text) {
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return element("div", { class: "copy" }, element("pre", { class: "wrap command" }, text), button);
}

// Curves.

const views = new Map();
const todayCharts = new Map(data.today.map((chart) => [chart.id, chart]));

/** Draws the curves of a state with today's behind them; the same chart stays where it is. */
function showCurves(own, today) {
  const ids = [...new Set([...today.keys(), ...own.keys()])];
  for (const id of ids) {
    const [front, back] = [own.get(id), today.get(id)];
    const behind = (back?.series ?? []).map((series) => ({ ...series, name: "today", color: null, faint: true }));
    const first = (front?.series ?? []).map((series) => ({ ...series, name: moved.size > 0 ? "changed" : "today", color: 0 }));
    const chart = { ...(front ?? back), series: moved.size > 0 ? [...behind, ...first] : first };
    let view = views.get(id);
    if (!view) views.set(id, (view = new ChartView(chart, chartPlace)));
    view.chart = chart;
    view.series = decoded(chart);
    view.legend.replaceChildren();
    view.fillLegend();
    view.state = null;
  }
  changed();
}

// The list of what was kept.

const keptPlace = document.getElementById("kept");

function showKept() {
  if (kept.length === 0) return keptPlace.replaceChildren();
  const row = (own, n) => {
    const name = element("input", { type: "text", value: own.name, maxlength: 40, "aria-label": "Name; the policy is called so" });
    name.addEventListener("change", () => {
      own.name = name.value.replaceAll("|", " ").trim() || own.name;
      writeAddress();
    });
    const back = element("button", { type: "button", title: "Go to this state" }, "Show");
    back.addEventListener("click", () => goTo(own.values));
    const away = element("button", { type: "button", "aria-label": `Remove ${own.name} from the list` }, "\u00d7");
    away.addEventListener("click", () => {
      kept.splice(n, 1);
      told();
    });
    const cost = own.cost ? element("span", { class: "figure" }, own.cost) : "";
    return element("li", {}, name, element("span", { class: "what" }, words(own.values).join("; ")), cost, back, away);
  };
  keptPlace.replaceChildren(element("h2", {}, "Kept: each becomes a policy"), element("ul", { class: "kept-list" }, ...kept.map(row)));
}

function showWritten(answer) {
  const place = document.getElementById("written");
  place.hidden = false;
  place.classList.toggle("refused", Boolean(answer.why));
  if (answer.why) return place.replaceChildren(element("h2", {}, "Export failed"), element("pre", {}, answer.why));
  const objects = counted(answer.objects, "changed object", "changed objects");
  const policies = answer.policies.length === 1 ? `policy ${answer.policies[0]}` : `policies ${answer.policies.join(", ")}`;
  place.replaceChildren(
    element("h2", {}, `Written: ${answer.folder}`),
    element("p", {}, `${sentence(policies)}: ${objects}, and the scenario that holds ${answer.policies.length === 1 ? "it" : "them"} against today. To confirm:`),
    ...answer.commands.map(copyable),
  );
}
