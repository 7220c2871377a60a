// Coloured strips of credit, one cell a turn. The number and its sign are in the cell: colour repeats them.

const CODES = { __proto__: null, gold_exact: "G", soft_match: "S", read_only: "R", state_change: "W", message: "M", error: "E", duplicate: "D",
  grounding_call: "C", useful_read: "U", route: "→", wrong_subagent: "X", unscored: "–" };

const TINTS = ["down", "zero", "up"];

/** A signed number on a tint: blue above 0, orange below, fuller towards ±`full`. */
function heat(value, full = 1.5) {
  const cell = h("span", { class: `heat ${TINTS[sign(value) + 1]}` }, signed(value));
  cell.style.setProperty("--size", `${Math.round(12 + 48 * Math.min(1, Math.abs(value ?? 0) / full))}%`);
  return cell;
}

/** A tier's letter, its name for those who point or listen. */
function tierTag(tier) {
  return h("abbr", { class: `tier t-${CODES[tier] ? tier : "unscored"}`, title: words(tier ?? "unscored") },
    CODES[tier] ?? "?", h("span", { class: "visually-hidden" }, ` ${words(tier ?? "unscored")}`));
}

/** What the letters of these tiers mean. */
function tierLegend(tiers) {
  return h("ul", { class: "legend" }, Object.keys(CODES).filter((tier) => tiers.has(tier))
    .map((tier) => h("li", {}, h("span", { class: `tier t-${tier}`, "aria-hidden": "true" }, CODES[tier]), h("span", {}, `${CODES[tier]} = ${words(tier)}`))));
}

function stripTable(caption, corner, turns, rows, onTurn) {
  const heads = Array.from({ length: turns }, (_, k) => h("th", { scope: "col" },
    onTurn ? h("a", { href: `#turn-${k}`, "aria-label": `turn ${k}`, click: (event) => { event.preventDefault(); onTurn(k); } }, String(k)) : String(k)));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "strips" }, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, corner), heads)),
      h("tbody", {}, rows.map(([name, cells]) => h("tr", {}, h("th", { scope: "row" }, name),
        Array.from({ length: turns }, (_, k) => h("td", {}, cells[k] ?? "")))))));
}

/** One rollout: tier, reward and every estimator's advantage, turn by turn. */
function creditStrips(credit, onTurn) {
  return stripTable("Credit of each turn", "turn", credit.tiers.length, [
    ["tier", credit.tiers.map(tierTag)],
    ["reward", credit.rewards.map((r) => heat(r, 1))],
    ...Object.entries(credit.advantages).map(([name, values]) => [name, values.map((a) => heat(a))]),
  ], onTurn);
}

/** The group: a row for each sibling, one measure. */
function groupStrips(index, group, current, measure) {
  const cells = (c) => (measure === "tier" ? c.tiers.map(tierTag)
    : measure === "reward" ? c.rewards.map((r) => heat(r, 1)) : c.advantages[measure].map((a) => heat(a)));
  const name = (c) => {
    const line = index.rollouts[c.rollout];
    const label = `trial ${line.trial}`;
    return h("span", { class: "sibling" },
      c.rollout === current ? h("strong", {}, `${label} (this)`) : h("a", { href: `#rollout/${c.rollout}` }, label), " ", outcomeTag(line.outcome));
  };
  return stripTable(`The group's rollouts side by side: ${words(measure)} of each turn`, "rollout",
    Math.max(0, ...group.map((c) => c.tiers.length)), group.map((c) => [name(c), cells(c)]));
}
