// Addresses to views: #overview, #rollouts?filters, #rollout/<number>?filters.

let drawn = 0;

async function show(focus) {
  const ticket = ++drawn;
  const [path, search] = location.hash.slice(1).split("?");
  const query = new URLSearchParams(search ?? "");
  const [name, number] = path.split("/");
  const index = await block("index");
  const content = name === "rollouts" ? rolloutTable(index, query)
    : name === "rollout" ? await rolloutView(index, Number(number), query) : overview(index, query);
  if (ticket !== drawn) return; // a later address has overtaken this one
  const main = document.getElementById("main");
  main.replaceChildren(...content.filter((part) => part !== null));
  for (const view of ["overview", "rollouts"]) {
    const here = view === name || (view === "rollouts" && name === "rollout") || (view === "overview" && !name);
    const link = document.getElementById(`nav-${view}`);
    here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  const heading = main.querySelector("h1");
  document.title = `${heading.textContent} · ${TITLE}`;
  if (focus === "heading") { window.scrollTo(0, 0); heading.focus({ preventScroll: true }); }
  else if (focus) document.getElementById(focus)?.focus();
  performance.mark("shown");
  document.documentElement.dataset.shown = location.hash || "#overview";
}

/** Goes to an address and keeps the focus on the control `id`. */
function go(address, id) {
  history.pushState(null, "", address);
  show(id);
}

const TITLE = document.title;
document.getElementById("theme").addEventListener("change", (event) => { document.documentElement.dataset.theme = event.target.value; });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); document.getElementById("main").focus(); });
window.addEventListener("hashchange", () => show("heading"));
window.addEventListener("popstate", () => show("heading"));
await show(null);
