// The controls: sliders, choices and chips, each with today's value marked.

/** What brings each control to where the state has it. */
const places = [];

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const todayIndex = (control) => control.stops.findIndex((stop) => stop.value === control.today);

function slider(control) {
  const last = control.stops.length - 1;
  const name = `control-${control.id}`;
  const input = element("input", { type: "range", min: 0, max: last, step: 1, id: name });
  const output = element("output", { for: name });
  const today = todayIndex(control);
  const share = last > 0 ? today / last : 0;
  const mark = element("button", { type: "button", class: "mark-today", tabindex: -1, title: "Reset to today's value" }, `today ${control.stops[today].label}`);
  const tick = element("span", { class: "tick-today", "aria-hidden": "true" });
  // The thumb's middle is half its width from either end; words stay within the track.
  tick.style.left = mark.style.left = `calc(${(share * 100).toFixed(2)}% + ${(8 - share * 16).toFixed(1)}px)`;
  mark.style.transform = `translateX(-${Math.round(share * 100)}%)`;
  mark.addEventListener("click", () => move(control.id, control.today));
  input.addEventListener("input", () => move(control.id, control.stops[Number(input.value)].value));
  places.push(() => {
    const at = control.stops.findIndex((stop) => stop.value === valueOf(control.id));
    input.value = at;
    input.setAttribute("aria-valuetext", control.stops[at].label);
    output.textContent = control.stops[at].label;
  });
  const head = element("div", { class: "head" }, element("label", { for: name }, sentence(control.label)), output);
  return element("div", { class: "control" }, head, element("div", { class: "track" }, input, tick, mark));
}

function choice(control) {
  const name = `control-${control.id}`;
  const inputs = control.stops.map((stop) => element("input", { type: "radio", name, value: stop.value }));
  const segment = (stop, n) => {
    const today = stop.value === control.today;
    const text = element("span", { class: today ? "is-today" : null, title: today ? "as it is today" : null }, stop.label);
    inputs[n].addEventListener("change", () => move(control.id, stop.value));
    return element("label", {}, inputs[n], text);
  };
  places.push(() => inputs.forEach((input) => (input.checked = input.value === valueOf(control.id))));
  const head = element("legend", { class: "head" }, element("span", { class: "name" }, sentence(control.label)));
  return element("fieldset", { class: "control" }, head, element("div", { class: "segments" }, ...control.stops.map(segment)));
}

function chips(control) {
  const name = `control-${control.id}`;
  const today = new Set(control.today.split(","));
  const present = () => new Set(valueOf(control.id).split(","));
  const buttons = control.stops.map((stop) => {
    const button = element("button", { type: "button", class: today.has(stop.value) ? "is-today" : null }, stop.label);
    button.addEventListener("click", () => {
      const now = present();
      if (!now.delete(stop.value)) now.add(stop.value);
      // A pool that may have nothing is no pool.
      if (now.size > 0) move(control.id, control.stops.map((own) => own.value).filter((own) => now.has(own)).join(","));
    });
    return button;
  });
  places.push(() => {
    const now = present();
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(now.has(control.stops[n].value))));
  });
  const head = element("div", { class: "head", id: name }, element("span", { class: "name" }, sentence(control.label)));
  return element("div", { class: "control", role: "group", "aria-labelledby": name }, head, element("div", { class: "chips" }, ...buttons));
}

function drawControls() {
  const place = document.getElementById("controls");
  const groups = new Map();
  // What happens to the cluster stands first: everything else is an answer to it.
  const ordered = [...data.controls].sort((one, two) => Number(two.circumstance) - Number(one.circumstance));
  for (const control of ordered) groups.set(control.group, [...(groups.get(control.group) ?? []), control]);
  const make = { slider, choice, chips };
  let drawn = 0;
  for (const [name, members] of groups) {
    const count = element("span", { class: "count" });
    const details = element("details", {}, element("summary", {}, name, " ", count));
    // A screen's worth is open.
    details.open = drawn < 9 || members.some((own) => moved.has(own.id));
    drawn += members.length;
    for (const control of members) {
      const own = make[control.form](control);
      if (control.note) own.append(element("p", { class: "note" }, control.note));
      own.dataset.control = control.id;
      details.append(own);
      places.push(() => own.classList.toggle("moved", moved.has(control.id)));
    }
    places.push(() => {
      const number = members.filter((own) => moved.has(own.id)).length;
      count.textContent = number > 0 ? `${number} changed` : "";
    });
    place.append(details);
    if (members.some((own) => own.circumstance)) details.append(sameSwitch());
  }
  if (groups.size > 0) place.prepend(element("p", { class: "note" }, "Today's values are marked or underlined."));
  if (groups.size === 0) place.append(element("p", { class: "note" }, "There is nothing to adjust in this scenario: it has no NodePools, node groups, autoscalers, or load that the page can change."));
}

/** Whether today meets the same load and faults. */
function sameSwitch() {
  const input = element("input", { type: "checkbox", id: "same" });
  input.addEventListener("change", () => setSame(input.checked));
  places.push(() => (input.checked = sameCircumstances));
  return element("p", { class: "note" }, input, element("label", { for: "same" }, " compare with today's settings under this load and these faults"));
}

function placeControls() {
  for (const own of places) own();
  document.getElementById("undo").disabled = before.length === 0;
  document.getElementById("redo").disabled = after.length === 0;
  document.getElementById("reset").disabled = moved.size === 0;
  document.getElementById("keep").disabled = moved.size === 0;
  document.getElementById("write").disabled = moved.size === 0 && kept.length === 0;
}
