// Two reports beside each other: the instant that one replay shows, the other shows too.

const frames = [...document.querySelectorAll("iframe")];
/** Where each replay stood when last looked at. */
let known = null;

function follow() {
  const pages = frames.map((frame) => frame.contentDocument);
  const sliders = pages.map((page) => page?.getElementById("slider"));
  if (sliders.every(Boolean)) {
    const now = sliders.map((slider) => slider.value);
    if (known === null) for (const page of pages) page.getElementById("replay-stage")?.scrollIntoView();
    // At first the second goes to where the first begins.
    const mover = known === null ? 0 : now.findIndex((value, n) => value !== known[n]);
    if (mover >= 0) {
      const other = sliders[1 - mover];
      other.value = now[mover];
      other.dispatchEvent(new Event("input"));
    }
    known = sliders.map((slider) => slider.value);
  }
  requestAnimationFrame(follow);
}

follow();
