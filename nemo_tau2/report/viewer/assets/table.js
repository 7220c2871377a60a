// The table of rollouts: filters, sorting, pages. Its state is the address, so a view can be linked.

const PAGE = 100;
const COLUMNS = [
  ["task", "Task"], ["domain", "Domain"], ["trial", "Trial"], ["outcome", "Outcome"], ["reward", "Reward"],
  ["stop", "Stop reason"], ["turns", "Turns"], ["calls", "Calls"], ["errors", "Errors"], ["gold", "Gold actions"],
  ["patterns", "Patterns"], ["blame", "Owed to"], ["seconds", "Seconds"]];
const FILTERS = [["domain", "Domain"], ["outcome", "Outcome"], ["stop", "Stop reason"], ["pattern", "Pattern"], ["blame", "Owed to"]];
const fieldOf = (line, key) => (key === "pattern" ? line.patterns : [line[key]]);

/** The numbers of the rollouts that a query keeps, in its order. */
function selection(index, query) {
  const text = (query.get("text") ?? "").toLowerCase();
  const kept = index.rollouts.map((line, i) => i).filter((i) => {
    const line = index.rollouts[i];
    return FILTERS.every(([key]) => !query.get(key) || fieldOf(line, key).includes(query.get(key)))
      && (!text || `${line.domain} ${line.task}`.toLowerCase().includes(text));
  });
  const [key, way] = [query.get("sort"), query.get("desc") ? -1 : 1];
  const value = (i) => (key === "patterns" ? index.rollouts[i].patterns.join(", ") : index.rollouts[i][key]);
  const places = placesOf(index);
  const sorted = COLUMNS.some(([name]) => name === key);
  return kept.sort((a, b) => (sorted ? way * compareValues(value(a), value(b)) : 0) || places[a] - places[b]);
}

/** Each rollout's place by domain, task and trial: rows are stored in the order in which episodes end. */
function placesOf(index) {
  if (!index.places) {
    const order = index.rollouts.map((line, i) => i).sort((a, b) => {
      const [x, y] = [index.rollouts[a], index.rollouts[b]];
      return compareValues(x.domain, y.domain) || compareValues(x.task, y.task) || compareValues(x.trial, y.trial) || a - b;
    });
    index.places = [];
    order.forEach((i, place) => { index.places[i] = place; });
  }
  return index.places;
}

/** Numbers by size, text by its embedded numbers too; what is missing comes last upwards. */
function compareValues(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "number" && typeof b === "number" ? a - b : ORDER.compare(String(a), String(b));
}
const ORDER = new Intl.Collator("en", { numeric: true });

function rolloutTable(index, query) {
  const body = h("tbody");
  const count = h("p", { id: "count" });
  const pages = h("nav", { "aria-label": "Pages", class: "pages" });
  const heads = COLUMNS.map(([key, title]) => h("th", { scope: "col" },
    h("button", { type: "button", click: () => {
      change({ desc: query.get("sort") === key && !query.get("desc") ? "1" : "", sort: key, page: "" });
    } }, title, h("span", { "aria-hidden": "true", class: "arrow" }))));
  const change = (values) => {
    for (const [key, value] of Object.entries(values)) value ? query.set(key, value) : query.delete(key);
    history.replaceState(null, "", `#rollouts?${query}`);
    draw();
  };
  const draw = () => {
    const found = selection(index, query);
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    const page = Math.min(last, Math.max(0, Number(query.get("page")) || 0));
    const range = found.length ? `, ${page * PAGE + 1} to ${Math.min(found.length, (page + 1) * PAGE)} shown` : "";
    count.textContent = `${found.length} of ${index.rollouts.length} rollouts${range}`;
    say(count.textContent);
    body.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map((i) => tableRow(index.rollouts[i], i, query)));
    heads.forEach((head, i) => {
      const sorted = query.get("sort") === COLUMNS[i][0];
      head.setAttribute("aria-sort", sorted ? (query.get("desc") ? "descending" : "ascending") : "none");
      head.querySelector(".arrow").textContent = sorted ? (query.get("desc") ? " ▼" : " ▲") : "";
    });
    place.textContent = `Page ${page + 1} of ${last + 1}`;
    const held = document.activeElement;
    [previous.disabled, next.disabled] = [page === 0, page === last];
    if (held === previous || held === next) (held.disabled ? (held === next ? previous : next) : held).focus();
  };
  const turn = (text, by) => h("button", { type: "button", click: () => change({ page: String((Number(query.get("page")) || 0) + by) }) }, text);
  const [previous, place, next] = [turn("Previous page", -1), h("span"), turn("Next page", 1)];
  pages.append(previous, place, next);
  const filters = FILTERS.map(([key, title]) => {
    const values = [...new Set(index.rollouts.flatMap((line) => fieldOf(line, key)))].filter((v) => v !== null).sort();
    return choice(title, [["", "any"], ...values.map((v) => [v, key === "domain" ? v : words(v)])], query.get(key) ?? "",
      (value) => change({ [key]: value, page: "" }), { id: `filter-${key}` });
  });
  const search = h("input", { id: "filter-text", type: "search", value: query.get("text") ?? "",
    input: () => change({ text: search.value, page: "" }) });
  draw();
  return [
    h("h1", { tabindex: "-1" }, "Rollouts"),
    h("div", { role: "search", "aria-label": "Filters", class: "filters" }, filters,
      h("label", { class: "field" }, "Task contains ", search),
      h("button", { type: "button", click: () => go("#rollouts", "filter-domain") }, "Clear")),
    count,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rollouts" },
      h("table", { class: "rollouts" }, h("caption", { class: "visually-hidden" }, "Rollouts; the column heads sort"),
        h("thead", {}, h("tr", {}, heads)), body)),
    pages,
  ];
}

function tableRow(line, i, query) {
  const cell = (value) => h("td", {}, value ?? "–");
  const number = (value, digits) => h("td", { class: "number" }, typeof value === "number" ? (digits === undefined ? String(value) : value.toFixed(digits)) : "–");
  return h("tr", {},
    h("th", { scope: "row", class: line.task.length > 12 ? "long" : null }, h("a", { href: `#rollout/${i}?${query}`, title: line.task }, line.task)),
    cell(line.domain), number(line.trial), h("td", {}, outcomeTag(line.outcome)), number(line.reward, 2),
    cell(words(line.stop)), number(line.turns), number(line.calls), number(line.errors), number(line.gold),
    cell(line.patterns.map(words).join(", ") || "–"), cell(line.blame && words(line.blame)), number(line.seconds, 2));
}

const OUTCOMES = { passed: "✓ passed", failed: "✗ failed", masked: "○ masked" };
const outcomeTag = (outcome) => h("span", { class: `tag ${outcome}` }, OUTCOMES[outcome]);
