// Every decision with its cause, in a table that can be searched; and the player, which steps from one to the next.

/** Decisions as sentences, in order. */
function decodedDecisions(encoded) {
  let at = 0;
  return encoded.rows.map(([since, kind, node, workload, pattern, ...gaps]) => {
    at += since;
    let gap = 0;
    const cause = encoded.patterns[pattern].replace(/\u0001/g, () => gaps[gap++]);
    const subject = node >= 0 ? data.replay.nodes[node]?.[0] ?? `node ${node}` : workload >= 0 ? data.workloads[workload].name : "";
    return { at, kind: encoded.kinds[kind][0], group: encoded.kinds[kind][1], subject, cause };
  });
}

const decisions = data.decisions ? decodedDecisions(data.decisions) : [];
const ROWS = 12;
const GROUPS = { replicas: "Replica counts", launches: "Launches", removals: "Removals", outside: "External" };

class DecisionTable {
  constructor(place) {
    this.rows = ROWS;
    this.found = [];
    this.groups = new Set(Object.keys(GROUPS));
    this.search = element("input", { type: "search", placeholder: "Search node, workload, or cause", "aria-label": "Search decisions" });
    this.inWindow = element("input", { type: "checkbox" });
    this.count = element("p", { class: "note", "aria-live": "polite" });
    this.body = element("tbody", {});
    this.more = element("button", { type: "button" }, "Show more");
    const heads = ["Time", "After", "Event", "Subject", "Cause"].map((name) => element("th", { scope: "col" }, name));
    const table = element("table", { class: "decisions" }, element("thead", {}, element("tr", {}, ...heads)), this.body);
    const scroll = element("div", { class: "scroll" }, table);
    place.append(this.filters(), this.count, scroll, this.more);
    hintAtScroll(scroll);
    this.search.addEventListener("input", () => this.restart());
    this.inWindow.addEventListener("change", () => this.restart());
    this.more.addEventListener("click", () => {
      this.rows += 10 * ROWS;
      this.state = null;
      changed();
    });
    onChange(() => this.draw());
    // On paper nothing can be asked for.
  }

  filters() {
    const bar = element("div", { class: "filters" }, this.search);
    for (const [group, name] of Object.entries(GROUPS)) {
      const count = decisions.filter((decision) => decision.group === group).length;
      if (count === 0) continue;
      const box = element("input", { type: "checkbox", checked: "" });
      box.addEventListener("change", () => {
        if (box.checked) this.groups.add(group);
        else this.groups.delete(group);
        this.restart();
      });
      bar.append(element("label", {}, box, ` ${name} (${amount(count, true)})`));
    }
    bar.append(element("label", {}, this.inWindow, " Only the time shown"));
    return bar;
  }

  restart() {
    this.rows = ROWS;
    this.state = null;
    changed();
  }

  draw() {
    const state = this.inWindow.checked ? `${view.from},${view.to}` : "";
    if (this.state === state) return;
    this.state = state;
    const wanted = this.search.value.toLowerCase();
    const found = decisions.filter(
      (own) =>
        this.groups.has(own.group) &&
        (!this.inWindow.checked || (own.at >= view.from && own.at <= view.to)) &&
        (wanted === "" || `${own.kind} ${own.subject} ${own.cause}`.toLowerCase().includes(wanted)),
    );
    this.found = found;
    this.drawRows(this.rows);
    const all = data.decisions.in_all;
    const cut = all > decisions.length ? ` The page holds ${amount(decisions.length, true)} of ${amount(all, true)}; events.jsonl has all.` : "";
    this.count.textContent = `${counted(found.length, "decision", "decisions")}; select a time to open it in the replay.${cut}`;
    this.more.hidden = found.length <= this.rows;
  }

  /** The first `count` of the decisions that are looked for. */
  drawRows(count) {
    this.body.replaceChildren(...this.found.slice(0, count).map((own) => this.row(own)));
  }

  row(own) {
    const jump = element("button", { type: "button", class: "link" }, moment(own.at, true));
    jump.addEventListener("click", () => {
      const replay = document.getElementById("replay");
      if (replay) replay.open = true;
      setAt(own.at);
    });
    return element("tr", {}, element("td", {}, jump), element("td", {}, span(own.at)), element("td", {}, own.kind), element("td", {}, own.subject), element("td", { class: "cause" }, unbroken(own.cause)));
  }
}

/** Instants at which something happens, ascending. */
function eventInstants() {
  const instants = new Set(decisions.map((decision) => decision.at));
  for (const node of nodes) for (const at of [node.asked, node.ready, node.told, node.stopped, node.notice]) instants.add(at);
  return [...instants].filter((at) => at >= 0 && at <= data.duration).sort((one, two) => one - two);
}

/** Play, pause, step, zoom: one bar for the whole page. */
class Player {
  constructor(place) {
    this.instants = eventInstants();
    this.slider = element("input", { type: "range", id: "slider", min: 0, max: data.duration, step: 1, value: 0, "aria-label": "Time of the replay" });
    this.now = element("output", { for: "slider" });
    this.speed = element("select", { "aria-label": "Playback length" });
    for (const [seconds, name] of [[30, "In 30 s"], [60, "In 1 min"], [120, "In 2 min"], [480, "In 8 min"]]) {
      this.speed.append(element("option", { value: seconds }, name));
    }
    this.speed.value = "60";
    this.playing = null;
    this.play = this.button("play", "Play", "Play", () => this.toggle());
    const steps = [
      this.button("before", "\u2039 Event", "Previous event", () => this.step(-1)),
      this.play,
      this.button("next", "Event \u203a", "Next event", () => this.step(1)),
    ];
    const first = element("div", { class: "row" }, ...steps, this.slider, this.now);
    const second = element("div", { class: "row" }, ...windowButtons(), windowSays(), this.speed);
    place.append(first, second);
    this.slider.addEventListener("input", () => setAt(Number(this.slider.value)));
    // By itself an arrow key would move it by a tenth of a second.
    this.slider.addEventListener("keydown", handleKey);
    playOrPause = () => this.toggle();
    onChange(() => this.draw());
  }

  button(id, text, label, action) {
    const made = element("button", { type: "button", id, "aria-label": label, title: label }, text);
    made.addEventListener("click", action);
    return made;
  }

  step(direction) {
    this.pause();
    const position = direction > 0 ? lastUntil(this.instants, view.at) + 1 : lastUntil(this.instants, view.at - 1);
    if (position >= 0 && position < this.instants.length) setAt(this.instants[position]);
  }

  toggle() {
    if (this.playing) return this.pause();
    if (view.at >= data.duration) view.at = 0;
    let before = null;
    const move = (time) => {
      if (!this.playing) return;
      const passed = before === null ? 0 : (time - before) / 1000;
      before = time;
      setAt(view.at + (data.duration / Number(this.speed.value)) * passed);
      if (view.at >= data.duration) return this.pause();
      this.playing = requestAnimationFrame(move);
    };
    this.playing = requestAnimationFrame(move);
    changed();
  }

  pause() {
    if (this.playing) cancelAnimationFrame(this.playing);
    this.playing = null;
    changed();
  }

  draw() {
    this.slider.value = Math.round(view.at);
    this.slider.setAttribute("aria-valuetext", `${moment(view.at, true)} UTC`);
    this.now.textContent = `${moment(view.at, true)} UTC`;
    const word = this.playing ? "Pause" : "Play";
    if (this.play.textContent === word) return;
    for (const name of ["aria-label", "title"]) this.play.setAttribute(name, word);
    this.play.textContent = word;
  }
}

/** What has happened most lately. */
class Ticker {
  constructor(place) {
    this.list = element("ol", { class: "ticker" });
    this.times = decisions.map((decision) => decision.at);
    place.append(this.list);
    onChange(() => this.draw());
  }

  draw() {
    const last = lastUntil(this.times, view.at);
    if (this.last === last) return;
    this.last = last;
    const lines = decisions.slice(Math.max(last - 4, 0), last + 1).reverse();
    this.list.replaceChildren(...lines.map((own) => element("li", {}, `${moment(own.at, true)} `, element("strong", {}, own.kind), unbroken(` ${own.subject} ${own.cause}`))));
  }
}

const places = Object.fromEntries(["player", "replay-stage", "ticker", "strips", "decisions-table"].map((id) => [id, document.getElementById(id)]));
if (places.player) new Player(places.player);
if (places["replay-stage"] && nodes.length > 0) new Replay(places["replay-stage"]);
if (places.ticker) new Ticker(places.ticker);
if (places.strips && nodes.length > 0) new Strips(places.strips);
if (places["decisions-table"]) new DecisionTable(places["decisions-table"]);
view.at = data.counts.opens;
changed();
