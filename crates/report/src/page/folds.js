// Parts that are folded, and tables of which the first rows are seen.

/** Rows of a table that are seen before the reader asks for others. */
const SEEN = 12;

/** Opens what an address leads to. */
function openAddressed() {
  const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  if (!target) return;
  for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  target.scrollIntoView();
}

/** A search over all rows of a table, and a button that shows all. */
function makeFinder(scroll) {
  const rows = [...scroll.querySelectorAll("tbody tr")];
  if (rows.length <= SEEN) return;
  let all = false;
  const search = element("input", { type: "search", placeholder: `Search ${amount(rows.length, true)} rows`, "aria-label": "Search the table" });
  const button = element("button", { type: "button" }, "");
  const show = () => {
    const wanted = search.value.toLowerCase();
    let seen = 0;
    for (const row of rows) {
      const found = wanted === "" || row.textContent.toLowerCase().includes(wanted);
      row.hidden = !found;
      row.classList.toggle("rest", found && !all && seen >= SEEN);
      if (found) seen += 1;
    }
    button.textContent = all ? `Show ${SEEN}` : `Show all ${amount(seen, true)}`;
    button.hidden = seen <= SEEN;
  };
  search.addEventListener("input", show);
  button.addEventListener("click", () => {
    all = !all;
    show();
  });
  scroll.before(element("div", { class: "finder" }, search, button));
  show();
}

const folds = [...document.querySelectorAll("details.fold")];
for (const fold of folds) fold.addEventListener("toggle", changed);
for (const scroll of document.querySelectorAll(".fold .scroll")) if (!scroll.querySelector(".decisions")) makeFinder(scroll);
addEventListener("hashchange", openAddressed);
// A link to where the address leads already is followed as well.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (link && link.getAttribute("href") === location.hash) openAddressed();
});
openAddressed();
/** A button that copies a command. */
function makeCopy(code) {
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  code.after(" ", button);
}
for (const code of document.querySelectorAll("code.try")) makeCopy(code);
// Headings have an address of their own, to be passed on.
for (const heading of document.querySelectorAll("h2[id], h3[id], .fold > summary h2")) {
  const id = heading.id || heading.closest("details").id;
  const link = element("a", { class: "anchor", href: `#${id}`, "aria-label": `Link to ${heading.textContent}` }, "#");
  // A summary is a button, which holds no link: that of a fold is at the end of its line, once it is open.
  heading.closest("summary") ? heading.closest("summary").after(link) : heading.append(" ", link);
}

// Paper has these parts, and what the reader has opened.
const ON_PAPER = ["charts", "cost", "rests-on"];
let opened = [];
addEventListener("beforeprint", () => {
  opened = folds.filter((fold) => !fold.open && ON_PAPER.includes(fold.id));
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false;
});
