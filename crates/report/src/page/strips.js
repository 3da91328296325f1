// The lives of nodes as strips: one row for each, the darker the fuller.

/** How full a node is in each column of pixels, by the fullest of CPU, memory and accelerators. */
function fullness(node, columns, columnOf) {
  const change = node.offers.map(() => new Float64Array(columns + 1));
  for (const pod of node.pods) {
    const from = clamp(columnOf(pod.bound), 0, columns);
    const until = clamp(Math.max(columnOf(Math.min(pod.gone, node.gone, data.duration)), columnOf(pod.bound) + 1), 0, columns);
    change.forEach((own, resource) => {
      own[from] += pod.count * pod.size[resource];
      own[until] -= pod.count * pod.size[resource];
    });
  }
  const full = new Float64Array(columns);
  const requested = node.offers.map(() => 0);
  for (let column = 0; column < columns; column++) {
    change.forEach((own, resource) => (requested[resource] += own[column]));
    full[column] = Math.min(Math.max(...shares(requested, node)), 1);
  }
  return full;
}

class Strips {
  constructor(place) {
    this.canvas = element("canvas", { role: "img", tabindex: 0 });
    this.canvas.setAttribute("aria-label", `Lifetimes of ${counted(nodes.length, "node", "nodes")}; the nodes table has the same data as text.`);
    this.rows = [...nodes].sort((one, two) => one.asked - two.asked || one.index - two.index);
    if (DRAWN) place.append(element("p", { class: "note" }, `${DRAWN}: those there when the page opens, then those that live longest; nodes.csv has all.`));
    place.append(element("div", { class: "stage" }, this.canvas), this.key());
    this.canvas.addEventListener("click", (event) => setAt(this.timeAt(event)));
    this.canvas.addEventListener("pointermove", (event) => {
      view.hover = this.timeAt(event);
      const row = this.rows[Math.floor(((event.clientY - this.canvas.getBoundingClientRect().top) - 2) / this.rowHeight)];
      this.canvas.title = row ? `${row.name} ${row.type} ${boughtAs(row)}${row.end ? `, ended: ${row.end}` : ""}` : "";
      changed();
    });
    this.canvas.addEventListener("pointerleave", () => {
      view.hover = null;
      changed();
    });
    this.canvas.addEventListener("keydown", handleKey);
    onChange(() => this.draw());
  }

  key() {
    const list = element("ul", { class: "legend key" });
    const entry = (name, mark) => list.append(element("li", {}, mark, name));
    entry("Share of node requested, 0 to 100%", element("span", { class: "mark scale" }));
    entry("Starting", element("span", { class: "mark waits" }));
    entry("Marked for removal", element("span", { class: "mark leaves" }));
    entry("Interruption notice", element("span", { class: "mark notice" }));
    keyOfPurchases(entry);
    return list;
  }

  timeAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left - this.left;
    return clamp(view.from + (x / this.inner) * (view.to - view.from), view.from, view.to);
  }

  draw() {
    if (this.canvas.parentElement.clientWidth === 0) return;
    const width = Math.max(this.canvas.parentElement.clientWidth, 200);
    const most = Math.max(this.rows.length, 1);
    this.rowHeight = clamp(Math.floor(560 / most), 2, 15);
    this.left = this.rowHeight >= 11 && width > 640 ? 200 : 8;
    this.inner = width - this.left - 4;
    const height = most * this.rowHeight + 24;
    const state = [width, view.from, view.to, devicePixelRatio, shade("page")].join();
    if (state !== this.state) this.drawRows(width, height);
    this.state = state;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.still, 0, 0);
    pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    const at = view.hover ?? view.at;
    if (at < view.from || at > view.to) return;
    pen.fillStyle = shade("ink");
    pen.fillRect(this.left + ((at - view.from) / (view.to - view.from)) * this.inner - 0.5, 0, 1, height - 20);
  }

  /** Draws all rows once for a window; the cursor is laid over them. */
  drawRows(width, height) {
    this.scale = devicePixelRatio || 1;
    this.still = document.createElement("canvas");
    for (const canvas of [this.canvas, this.still]) {
      canvas.width = Math.round(width * this.scale);
      canvas.height = Math.round(height * this.scale);
    }
    this.canvas.style.height = `${height}px`;
    const pen = this.still.getContext("2d");
    pen.scale(this.scale, this.scale);
    pen.fillStyle = shade("page");
    pen.fillRect(0, 0, width, height);
    const shades = Object.fromEntries(["heat-low", "heat-high", "waits", "frame", "warn", "bad", "faint", "ink", ...purchaseShades].map((name) => [name, shade(name)]));
    this.rows.forEach((node, row) => this.row(pen, shades, node, 2 + row * this.rowHeight));
    pen.fillStyle = shades.faint;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    const { ticks, step } = timeTicks(view.from, view.to, Math.max(Math.floor(this.inner / 80), 2));
    for (const at of ticks) {
      const label = timeLabel(at, step);
      const half = pen.measureText(label).width / 2;
      pen.fillText(label, clamp(this.x(at), half, width - half), height - 5);
    }
  }

  x(at) {
    return this.left + ((at - view.from) / (view.to - view.from)) * this.inner;
  }

  row(pen, shades, node, top) {
    const tall = Math.max(this.rowHeight - (this.rowHeight > 4 ? 1 : 0), 1);
    const part = (from, until, paint) => {
      const [left, right] = [clamp(this.x(from), this.left, this.left + this.inner), clamp(this.x(until), this.left, this.left + this.inner)];
      if (right <= left) return;
      pen.fillStyle = paint;
      pen.fillRect(left, top, Math.max(right - left, 1), tall);
    };
    const over = Math.min(node.gone, data.duration);
    part(node.asked, Math.min(node.ready, over), shades.waits);
    const columns = Math.ceil(this.inner);
    const perColumn = (view.to - view.from) / columns;
    const columnOf = (at) => Math.floor((at - view.from) / perColumn);
    const full = fullness(node, columns, columnOf);
    const [first, last] = [columnOf(Math.max(node.ready, view.from)), columnOf(Math.min(node.told, node.stopped, over, view.to))];
    // Columns of one shade are one rectangle.
    for (let column = Math.max(first, 0); column < Math.min(last, columns); ) {
      const level = Math.round(full[column] * 20);
      let next = column + 1;
      while (next < Math.min(last, columns) && Math.round(full[next] * 20) === level) next++;
      pen.fillStyle = `color-mix(in oklab, ${shades["heat-high"]} ${level * 5}%, ${shades["heat-low"]})`;
      pen.fillRect(this.left + column, top, next - column, tall);
      column = next;
    }
    // An edge below, so that an empty node is seen as well.
    if (tall >= 5 && last > first) {
      pen.fillStyle = shades.frame;
      const left = this.left + Math.max(first, 0);
      pen.fillRect(left, top + tall - 1, Math.max(this.left + Math.min(last, columns) - left, 0), 1);
    }
    part(node.told, Math.min(node.stopped, over), shades.warn);
    if (node.notice < Infinity && node.notice >= view.from && node.notice <= view.to) {
      pen.fillStyle = shades.bad;
      pen.fillRect(this.x(node.notice) - 1.5, top, 3, tall);
    }
    pen.fillStyle = shadeOf(node, shades);
    // Spot is half as wide.
    pen.fillRect(this.left - 6, top, node.bought === "spot" ? 2 : 4, tall);
    if (this.left > 100) {
      pen.fillStyle = shades.ink;
      pen.font = "11px system-ui, sans-serif";
      pen.textAlign = "right";
      pen.fillText(fitted(pen, `${node.name} ${node.type}`, this.left - 12), this.left - 10, top + tall - 3);
    }
  }
}
