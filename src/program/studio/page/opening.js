// Waits until the controls are found, then loads the page with them.

const status = document.getElementById("status");

async function wait() {
  try {
    const found = await (await fetch("ready", { cache: "no-store" })).json();
    if (found.why) return void (status.textContent = found.why);
    if (found.ready) return location.reload();
    if (found.controls > 0) status.textContent = `Checking settings: ${found.tried} of ${found.controls}`;
  } catch {
    status.textContent = "The studio has stopped";
    return;
  }
  setTimeout(wait, 100);
}

wait();
