// Tables that are wider than the page. It needs no data, and no other part.

/** Says of a box that is wider inside than outside that it scrolls, and lets keys scroll it, whenever its size changes. */
function hintAtScroll(place) {
  const look = () => {
    const cut = place.scrollWidth > place.clientWidth + 1;
    place.classList.toggle("cut", cut);
    const said = { tabindex: "0", role: "group", "aria-label": "A table that scrolls sideways" };
    for (const [name, value] of Object.entries(said)) cut ? place.setAttribute(name, value) : place.removeAttribute(name);
  };
  const observer = new ResizeObserver(() => requestAnimationFrame(look));
  observer.observe(place);
  for (const inner of place.children) observer.observe(inner);
}

for (const place of document.querySelectorAll(".scroll")) hintAtScroll(place);
