// The cluster at one instant: nodes as boxes, the pods on them as bands in the colour of their workload, as high as the
// part of the node that they request.

/** A node; instants in tenths of a second, `Infinity` where they never came. */
function decodedNode([name, row], index) {
  const [type, zone, bought, origin, end, cpu, memory, accelerators, asked, ...since] = row;
  const named = (position) => (position < 0 ? "" : data.names[position]);
  const [running, ready, told, stopped, gone, notice, ...lost] = since.map((own) => (own < 0 ? Infinity : asked + own));
  const over = Math.min(gone, stopped === Infinity ? Infinity : stopped + 60 * SECOND);
  return {
    index, name, type: named(type), zone: named(zone), bought: named(bought), origin: named(origin), end: named(end),
    offers: [cpu, memory, accelerators], asked, running, ready, told, stopped, gone: over, notice, lost, pods: [],
  };
}

/** Pods with instants since the start, in order of creation. */
function decodedPods(columns) {
  const [bound, ready, gone, node, workload, size, count] = ["bound", "ready", "gone", "node", "workload", "size", "count"].map((name) => runs(columns[name]));
  return sums(columns.created).map((created, n) => {
    const at = bound[n] < 0 ? Infinity : created + bound[n];
    return {
      created, bound: at, ready: ready[n] < 0 ? Infinity : at + ready[n], gone: gone[n] < 0 ? Infinity : created + gone[n],
      node: node[n], workload: workload[n], size: data.replay.sizes[size[n]], count: count[n],
    };
  });
}

const nodes = (data.replay?.nodes || []).map(decodedNode);
const pods = data.replay ? decodedPods(data.replay.pods) : [];
for (const pod of pods) if (pod.node >= 0) nodes[pod.node].pods.push(pod);

/** The part of what a node offers of each resource that is requested of it. */
const shares = (requested, node) => requested.map((amount, own) => amount / Math.max(node.offers[own], 1));

/** The part of a node that a pod requests, by the fullest of CPU, memory and accelerators. */
const shareOf = (pod, node) => Math.max(...shares(pod.size, node));

/** Whether a node that was Ready is not so at an instant: it has lost its power. */
function isLost(node, at) {
  for (let n = 0; n < node.lost.length; n += 2) if (node.lost[n] <= at && at < node.lost[n + 1]) return true;
  return false;
}

/** What a node is doing at an instant; nothing before it was asked for and after it has gone. */
function phase(node, at) {
  if (at < node.asked || at >= node.gone) return null;
  if (at >= node.stopped) return "terminating";
  if (at >= node.told && node.ready <= node.told) return "draining";
  if (at >= node.notice) return "interrupted";
  if (isLost(node, at)) return "not ready";
  return at >= node.ready ? "ready" : "starting";
}

/** How nodes are bought: what that is called, and the name of its colour. */
const purchases = {
  spot: { name: "Spot", shade: "spot" },
  "on-demand": { name: "On-Demand", shade: "demand" },
  reserved: { name: "Reserved", shade: "reserved" },
  fargate: { name: "Fargate", shade: "fargate" },
};
const boughtAs = (node) => (node.bought === "" ? "not launched" : purchases[node.bought]?.name ?? node.bought);
const shadeOf = (node, shades) => shades[purchases[node.bought]?.shade ?? "demand"];
const purchaseShades = Object.values(purchases).map((own) => own.shade);

/** Says in a list which colour is which way to buy, of those that there are. */
function keyOfPurchases(entry) {
  const there = new Set(nodes.map((node) => node.bought));
  for (const [kind, own] of Object.entries(purchases)) {
    if (there.has(kind)) entry(own.name, element("span", { class: `mark ${own.shade}` }));
  }
}

/** Ready nodes counted by how they were bought: ` (3 Spot, 1 On-Demand)`. */
function bought(ready) {
  const words = ready.filter(([, count]) => count > 0).sort().reverse().map(([kind, count]) => `${amount(count, true)} ${kind}`);
  return words.length > 0 ? ` (${words.join(", ")})` : "";
}

/** Lists of counts, ready to be looked up by their instants. */
const countLists = (own, names) => own && {
  sampled: own.instants.sampled,
  times: sums(own.instants.at),
  ...Object.fromEntries(names.map((name) => [name, sums(own[name])])),
};
const nodeStates = ["starting", "not_ready", "interrupted", "draining"];
// Counts are of all nodes and pods, however few are drawn.
const nodeCounts = countLists(data.counts?.nodes, nodeStates);
const readyCounts = (data.counts?.nodes.ready ?? []).map((own) => [boughtAs(own), sums(own.count)]);
const podCounts = countLists(data.counts?.pods, ["on_nodes", "pending"]);

/** The place of the counts that hold at an instant. */
const placeAt = (list, at) => Math.max(lastUntil(list.times, Math.floor(at)), 0);

/** Which nodes are drawn, where not all are. */
const DRAWN = nodes.length < (data.replay?.nodes_in_all ?? 0)
  ? `${amount(nodes.length, true)} of ${amount(data.replay.nodes_in_all, true)} nodes are drawn`
  : "";

/** Gives every node a place that it keeps while it lives; the number of places. */
function assignPlaces() {
  const free = [];
  let places = 0;
  const leaving = [];
  for (const node of [...nodes].sort((one, two) => one.asked - two.asked || one.index - two.index)) {
    for (let n = leaving.length - 1; n >= 0; n--) {
      if (leaving[n].gone <= node.asked) free.push(leaving.splice(n, 1)[0].place);
    }
    free.sort((one, two) => two - one);
    node.place = free.pop() ?? places++;
    leaving.push(node);
  }
  return places;
}

/** Boxes as large as fit: columns, width and height of one. */
function layout(places, width, most) {
  const gap = width < 500 ? 4 : 6;
  for (const [least, ratio] of [[132, 0.8], [104, 0.85], [76, 0.9], [54, 1], [38, 1], [26, 1], [18, 1], [12, 1]]) {
    const columns = Math.max(Math.floor((width + gap) / (least + gap)), 1);
    const own = (width - gap * (columns - 1)) / columns;
    const boxWidth = Math.min(own, least * 1.5);
    const boxHeight = least * ratio;
    const rows = Math.ceil(places / columns);
    if (rows * (boxHeight + gap) <= most || least === 12) return { gap, columns, boxWidth, boxHeight, rows };
  }
  return null;
}

/** The pattern of a workload's pods: colours beyond the first four have level lines, DaemonSets upright ones. */
function podPattern(number) {
  if (number === null || number === undefined) return "daemon";
  return number >= ALIKE ? "more" : "";
}

class Replay {
  constructor(place) {
    this.canvas = element("canvas", { role: "img", tabindex: 0, "aria-describedby": "replay-says" });
    this.says = element("p", { id: "replay-says", class: "says-now" });
    this.waiting = element("div", { class: "waiting" });
    this.tip = element("div", { class: "tip", hidden: "" });
    const frame = element("div", { class: "stage" }, this.canvas, this.tip);
    place.append(this.says, this.waiting, frame, this.key());
    this.places = assignPlaces();
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    // A finger leaves when it is lifted; what it pointed at stays to be read.
    this.canvas.addEventListener("pointerleave", (event) => (this.tip.hidden = this.tip.hidden || event.pointerType === "mouse"));
    this.canvas.addEventListener("keydown", handleKey);
    onChange(() => this.draw());
  }

  /** What colours and frames mean. */
  key() {
    const list = element("ul", { class: "legend key" });
    const entry = (name, mark) => list.append(element("li", {}, mark, name));
    keyOfPurchases(entry);
    entry("Starting", element("span", { class: "mark starting" }));
    entry("Interrupted by EC2", element("span", { class: "mark interrupted" }));
    entry("Draining", element("span", { class: "mark draining" }));
    entry("Pale: pod not Ready", element("span", { class: "mark pale" }));
    const known = data.workloads.filter((workload) => workload.color !== null).sort((one, two) => one.color - two.color);
    for (const workload of known.slice(0, 12)) {
      entry(workload.name, element("span", { class: `swatch ${podPattern(workload.color)}`, style: `--own:${color(workload.color)}` }));
    }
    if (known.length > 12) entry(counted(known.length - 12, "more workload", "more workloads"), "");
    if (data.workloads.length > known.length) entry("DaemonSets", element("span", { class: `swatch ${podPattern(null)}`, style: `--own:${color(null)}` }));
    return list;
  }

  draw() {
    if (this.canvas.parentElement.clientWidth === 0) return;
    const at = view.at;
    const width = Math.max(this.canvas.parentElement.clientWidth, 200);
    this.layout = layout(Math.max(this.places, 1), width, width < 500 ? 460 : 560);
    const height = this.layout.rows * (this.layout.boxHeight + this.layout.gap);
    const scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.height = `${height}px`;
    }
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.pen.clearRect(0, 0, width, height);
    this.shades = Object.fromEntries(["card", "line", "ink", "faint", "bad", "warn", "page", "frame", ...purchaseShades].map((name) => [name, shade(name)]));
    this.present = nodes.filter((node) => phase(node, at));
    for (const node of this.present) this.box(node, at);
    this.tell(at);
  }

  corner(node) {
    const { columns, boxWidth, boxHeight, gap } = this.layout;
    return [(node.place % columns) * (boxWidth + gap), Math.floor(node.place / columns) * (boxHeight + gap)];
  }

  box(node, at) {
    const { boxWidth: width, boxHeight: height } = this.layout;
    const [x, y] = this.corner(node);
    const { pen, shades } = this;
    const now = phase(node, at);
    const head = height >= 50 ? 17 : Math.max(Math.round(height * 0.16), 2);
    pen.globalAlpha = now === "terminating" ? 0.35 : 1;
    pen.fillStyle = shades.card;
    pen.fillRect(x, y, width, height);
    this.bands(node, at, [x + 1, y + head, width - 2, height - head - 1]);
    const unknown = node.bought === "" || at < node.asked;
    pen.fillStyle = unknown ? shades.line : shadeOf(node, shades);
    pen.fillRect(x, y, width, head);
    if (node.bought === "spot" && !unknown) this.notches(x, y + head, width);
    if (head >= 17) this.words(node, x, y, width);
    this.frame(now, x, y, width, height);
    if (now !== "ready" && height >= 70) this.state(now, x, y + head, width);
    pen.globalAlpha = 1;
  }

  /** The edge that tells Spot from On-Demand without a colour. */
  notches(x, below, width) {
    const { pen, shades } = this;
    pen.fillStyle = shades.card;
    for (let at = 3; at + 3 <= width; at += 6) pen.fillRect(x + at, below - 2, 3, 2);
  }

  /** Pods on the node from the bottom up; more than a whole node is squeezed into it. */
  bands(node, at, [x, y, width, height]) {
    const { pen } = this;
    const here = node.pods.filter((pod) => pod.bound <= at && at < pod.gone);
    const total = here.reduce((sum, pod) => sum + pod.count * shareOf(pod, node), 0);
    const unit = height / Math.max(total, 1);
    let edge = y + height;
    for (const pod of here) {
      const own = Math.max(shareOf(pod, node) * unit, 0.75);
      pen.fillStyle = color(data.workloads[pod.workload].color);
      const alpha = pen.globalAlpha;
      for (let n = 0; n < pod.count; n++) {
        edge -= own;
        if (edge < y - 1) break;
        const [top, tall] = [Math.max(edge, y), own > 3 ? own - 1 : own];
        // A pod that is not Ready is pale but for an edge.
        if (at < pod.ready) pen.globalAlpha = alpha * 0.4;
        pen.fillRect(x, top, width, tall);
        pen.globalAlpha = alpha;
        if (at < pod.ready) pen.fillRect(x, top, Math.min(4, width), tall);
        this.pattern(podPattern(data.workloads[pod.workload].color), [x, top, width, tall]);
      }
    }
  }

  /** What tells a band from another one of like colour; nothing where the band is too low for it. */
  pattern(name, [x, top, width, tall]) {
    if (!name || tall < 5) return;
    const { pen, shades } = this;
    const before = pen.fillStyle;
    pen.fillStyle = shades.page;
    // Dashes: a whole line would part the band in two pods.
    if (name === "more") for (let at = 5; at + 4 <= width; at += 9) pen.fillRect(x + at, top + tall / 2 - 0.75, 4, 1.5);
    else for (let at = 4; at + 1.5 <= width; at += 5.5) pen.fillRect(x + at, top, 1.5, tall);
    pen.fillStyle = before;
  }

  /** The type and zone, cut to the width. */
  words(node, x, y, width) {
    const { pen } = this;
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = "#fff";
    pen.textBaseline = "middle";
    const zone = node.zone.slice(-2);
    pen.fillText(fitted(pen, `${node.type || node.name} ${zone}`, width - 8), x + 4, y + 9);
  }

  frame(now, x, y, width, height) {
    const { pen, shades } = this;
    pen.setLineDash({ starting: [4, 3], draining: [8, 4] }[now] ?? []);
    pen.lineWidth = now === "interrupted" || now === "not ready" || now === "draining" ? 3 : 1;
    pen.strokeStyle = { interrupted: shades.bad, "not ready": shades.bad, draining: shades.warn, starting: shades.faint }[now] ?? shades.frame;
    const inset = pen.lineWidth / 2;
    pen.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
    pen.setLineDash([]);
  }

  state(now, x, y, width) {
    const { pen, shades } = this;
    pen.font = "11px system-ui, sans-serif";
    const wide = Math.min(pen.measureText(now).width + 10, width - 6);
    pen.fillStyle = shades.page;
    pen.fillRect(x + 3, y + 3, wide, 16);
    pen.fillStyle = now === "interrupted" || now === "not ready" ? shades.bad : now === "draining" ? shades.warn : shades.ink;
    pen.fillText(now, x + 8, y + 11.5, wide - 8);
  }

  /** The time in words, and the pending pods. */
  tell(at) {
    const [place, podPlace] = [placeAt(nodeCounts, at), placeAt(podCounts, at)];
    const ready = readyCounts.map(([kind, values]) => [kind, values[place]]);
    const inAll = ready.reduce((sum, [, count]) => sum + count, 0);
    const [starting, ...others] = nodeStates.map((name) => nodeCounts[name][place]);
    const named = ["not Ready", "interrupted", "draining"].map((name, n) => (others[n] ? `${amount(others[n], true)} ${name}` : ""));
    const pending = podCounts.pending[podPlace];
    const parts = [
      `${counted(inAll, "node", "nodes")} Ready${bought(ready)}`,
      `${amount(starting, true)} starting`,
      ...named,
      `${counted(podCounts.on_nodes[podPlace], "pod", "pods")} on nodes (without DaemonSets)`,
      `${amount(pending, true)} pending`,
    ];
    const words = [`${day(at)} ${clock(at, true)} UTC, ${span(at)} after the start: ${parts.filter(Boolean).join(", ")}.`];
    const [nodesSince, podsSince] = [[nodeCounts, place], [podCounts, podPlace]].map(([list, own]) => (list.sampled ? list.times[own] : at));
    if (DRAWN) {
      const drawn = nodes.filter((node) => node.ready <= nodesSince && phase(node, nodesSince) && phase(node, nodesSince) !== "terminating" && !isLost(node, nodesSince));
      words.push(`${DRAWN}; ${amount(drawn.length, true)} of the ${amount(inAll, true)} Ready now.`);
    }
    // Of large runs only the counts of the samples are in the page.
    const late = [nodesSince < at ? "Nodes" : "", podsSince < at ? "pods" : ""].filter(Boolean).join(" and ");
    if (late) words.push(`${late[0].toUpperCase()}${late.slice(1)} are counted as of ${clock(Math.min(nodesSince, podsSince), true)}, as in timeline.csv.`);
    this.says.textContent = words.join(" ");
    this.canvas.setAttribute("aria-label", this.says.textContent);
    this.tray(pods.filter((pod) => pod.created <= at && at < Math.min(pod.bound, pod.gone)), pending);
  }

  tray(pending, total) {
    const squares = [];
    for (const pod of pending) {
      for (let n = 0; n < pod.count && squares.length < 120; n++) {
        const workload = data.workloads[pod.workload];
        squares.push(element("span", { class: `pod ${podPattern(workload.color)}`, style: `--own:${color(workload.color)}`, title: workload.name }));
      }
    }
    const words = total === 0 ? "No pods are pending." : `${counted(total, "pod pending", "pods pending")}:`;
    this.waiting.replaceChildren(element("span", { class: "faint" }, words), ...squares);
  }

  /** Says what lies under the pointer. */
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { boxWidth, boxHeight } = this.layout;
    const node = this.present.find((own) => {
      const [left, top] = this.corner(own);
      return x >= left && x < left + boxWidth && y >= top && y < top + boxHeight;
    });
    this.tip.hidden = !node;
    if (!node) return;
    this.tip.replaceChildren(...this.describe(node).map((line) => element("div", {}, line)));
    this.tip.style.left = `${clamp(x + 12, 0, Math.max(box.width - this.tip.offsetWidth, 0))}px`;
    this.tip.style.top = `${y + 14}px`;
  }

  describe(node) {
    const at = view.at;
    const here = node.pods.filter((pod) => pod.bound <= at && at < pod.gone);
    const requested = node.offers.map((_, own) => here.reduce((total, pod) => total + pod.count * pod.size[own], 0));
    const [cpu, memory, accelerators] = shares(requested, node);
    const percent = (share) => `${(share * 100).toFixed(0)}%`;
    const byWorkload = new Map();
    for (const pod of here) byWorkload.set(pod.workload, (byWorkload.get(pod.workload) || 0) + pod.count);
    const lines = [
      `${node.name}: ${phase(node, at)}`,
      [node.type, node.zone, boughtAs(node), node.origin].filter(Boolean).join(", "),
      `Requested: CPU ${percent(cpu)}, memory ${percent(memory)}${node.offers[2] > 0 ? `, accelerators ${percent(accelerators)}` : ""}`,
      ...[...byWorkload].slice(0, 8).map(([workload, count]) => `${count} \u00d7 ${data.workloads[workload].name}`),
    ];
    if (byWorkload.size > 8) lines.push(`and ${byWorkload.size - 8} more workloads`);
    if (node.told <= at && node.end) lines.push(`Ends: ${node.end}`);
    return lines;
  }
}
