// The database where it ended against where the gold actions leave it, field by field.

/** Paths to leaves of a JSON value, as [path, text]. */
function leaves(value, path = "") {
  if (value === null || typeof value !== "object") return [[path || "(value)", JSON.stringify(value)]];
  const entries = Object.entries(value);
  if (!entries.length) return [[path || "(value)", Array.isArray(value) ? "[]" : "{}"]];
  return entries.flatMap(([key, inner]) => leaves(inner, Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key));
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return undefined; }
}

function databaseDiff(info) {
  const diff = info.db_diff ?? [];
  if (info.db_match === undefined) return h("p", {}, "The task does not compare databases.");
  if (!diff.length) return h("p", {}, info.db_match ? "The database ends as the gold actions leave it." : "The databases differ; the row does not say where.");
  const more = (info.db_differences ?? diff.length) - diff.length;
  return h("div", {}, diff.map(rowDiff), more > 0 ? h("p", { class: "note" }, `${more} more rows differ; the rollout keeps the first ${diff.length}.`) : null);
}

function rowDiff(entry) {
  const [state, gold] = [parsed(entry.state), parsed(entry.gold)];
  const name = `${entry.side}: ${entry.table} / ${entry.row}`;
  if (state !== undefined && gold !== undefined) {
    const [here, there] = [new Map(leaves(state)), new Map(leaves(gold))];
    const paths = [...new Set([...here.keys(), ...there.keys()])].filter((path) => here.get(path) !== there.get(path));
    return dataTable(`${name}: the fields that differ`, ["field", "this rollout", "gold"],
      paths.map((path) => [path, sideCell("−", "down", here.get(path)), sideCell("+", "up", there.get(path))]), "diff");
  }
  return h("div", { class: "rowdiff" }, h("h3", {}, name),
    h("dl", {}, [["this rollout", entry.state, state], ["gold", entry.gold, gold]].map(([title, text, value]) => [
      h("dt", {}, title),
      h("dd", {}, value === undefined ? text : h("details", {}, h("summary", {}, "changed the row; its end state"), h("pre", {}, JSON.stringify(value, null, 2))))])));
}

function sideCell(sign, className, text) {
  return text === undefined ? h("span", { class: "faint" }, "absent") : h("span", { class: `side ${className}` }, `${sign} `, text);
}
