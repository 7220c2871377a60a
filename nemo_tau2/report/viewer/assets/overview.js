// The overview: how well, how surely, on what, and why not.

function overview(index, query) {
  const evaluation = index.evaluation;
  const domains = Object.keys(evaluation.domains);
  const part = domains.includes(query.get("domain")) ? query.get("domain") : "overall";
  const shown = part === "overall" ? evaluation.overall : evaluation.domains[part];
  const tiers = index.tiers[part] ?? {};
  const rollouts = (filter) => `#rollouts?${new URLSearchParams({ ...(part === "overall" ? {} : { domain: part }), ...filter })}`;
  const bars = (counts, key) => Object.entries(counts).map(([name, count]) => ({ name, count, href: rollouts({ [key]: name }) }));
  const graded = shown.denominators.graded;
  return [
    h("h1", { tabindex: "-1" }, "Overview"),
    h("p", { class: "note" }, `From ${index.sources.join(", ")}.`),
    evaluation.warnings.length
      ? h("section", { class: "warnings", "aria-labelledby": "warnings" }, h("h2", { id: "warnings" }, "Read this first"),
          h("ul", {}, evaluation.warnings.map((line) => h("li", {}, line))))
      : null,
    h("section", { "aria-labelledby": "passk" }, h("h2", { id: "passk" }, "How often it passes"),
      passK(evaluation, domains), denominators(evaluation, domains)),
    h("section", { "aria-labelledby": "why" }, h("h2", { id: "why" }, "Where and why it fails"),
      choice("Domain", [["overall", "all domains"], ...domains], part, (value) => go(`#overview?${new URLSearchParams({ domain: value })}`, "domain"), { id: "domain" }),
      h("div", { class: "grid" },
        difficulty(shown.difficulty),
        barChart("Failure patterns", "A failed rollout may show several; reward by inaction is a pattern of successes.", bars(shown.patterns, "pattern"), graded, "graded rollouts"),
        barChart("Whom failures are owed to", "By deterministic rules, and by a judge where no rule decides and one was asked; each rollout shows its evidence.", bars(shown.blame, "blame"), null, "rollouts"),
        barChart("Stop reasons", null, bars(shown.stop_reasons, "stop"), null, "rollouts")),
      breakdown(shown)),
    h("section", { "aria-labelledby": "turns" }, h("h2", { id: "turns" }, "What its turns are, and what they would be taught"),
      barChart("Turn tiers", "Turns of graded rollouts.", Object.entries(tiers).map(([name, t]) => ({ name, count: t.turns })),
        Object.values(tiers).reduce((sum, t) => sum + t.turns, 0), "turns"),
      tierAdvantages(index, tiers)),
  ];
}

const SHOWN_TOOLS = 25;

/** Who it is owed to by rule, and the patterns by number of gold actions, by tool and by parameter. */
function breakdown(shown) {
  const kinds = Object.keys(shown.patterns ?? {});
  const counts = (found) => kinds.map((kind) => String(found[kind] ?? "–"));
  const tools = Object.entries(shown.patterns_by_tool ?? {});
  const wrong = Object.entries(shown.wrong_parameters ?? {});
  const rules = Object.entries(shown.blame_by_rule ?? {}).flatMap(([party, found]) => Object.entries(found).map(([rule, count]) => [`${words(party)}: ${words(rule)}`, String(count)]));
  const table = (caption, heads, rows) => (rows.length ? dataTable(caption, heads, rows, "numbers") : null);
  const byTool = tools.length > SHOWN_TOOLS ? `Patterns by tool (rollouts; ${SHOWN_TOOLS} of ${tools.length} tools)` : "Patterns by tool (rollouts)";
  return h("div", {},
    kinds.length ? table("Patterns by number of gold actions (rollouts)", ["gold actions", "rollouts", "failed", ...kinds.map(words)],
      Object.entries(shown.patterns_by_gold ?? {}).map(([n, g]) => [n, String(g.rollouts), String(g.failed), ...counts(g.patterns)])) : null,
    kinds.length ? table(byTool, ["tool", ...kinds.map(words)],
      tools.slice(0, SHOWN_TOOLS).map(([tool, found]) => [h("code", {}, tool), ...counts(found)])) : null,
    h("div", { class: "grid" },
      table("Owed to, by rule (rollouts; a success that doing nothing would have had is the task's)", ["party: rule", "rollouts"], rules),
      table("Wrong parameters (rollouts)", ["parameter", "rollouts"], wrong.slice(0, SHOWN_TOOLS).map(([name, count]) => [h("code", {}, name), String(count)]))));
}

function passK(evaluation, domains) {
  const parts = [...domains.map((name) => [name, evaluation.domains[name].pass_k])];
  if (domains.length > 1) parts.push(["all, task-weighted", evaluation.overall.pass_k], ["all, mean of domains", evaluation.overall.macro]);
  const series = parts.map(([name, estimates]) => ({
    name, points: Object.entries(estimates).map(([k, e]) => ({ x: Number(k), ...e })) }));
  const rows = series.flatMap((line) => line.points.map((p) => [
    line.name, String(p.x), percent(p.value), `${percent(p.low)} to ${percent(p.high)}`, `${percent(p.worst)} to ${percent(p.best)}`, String(p.tasks)]));
  return intervalChart("pass^k with 95 % bootstrap intervals over tasks", `${evaluation.convention}. Dotted: from the worst to the best case where planned trials were not graded.`, "k", series,
    dataTable("pass^k", ["", "k", "value", "95 % interval", "worst to best case", "tasks"], rows));
}

function denominators(evaluation, domains) {
  const keys = ["planned", "finished", "infrastructure_failed", "graded", "tasks_planned", "tasks_graded"];
  const parts = [...domains.map((name) => [name, evaluation.domains[name]]), ["all", evaluation.overall]];
  return dataTable("Every denominator, and means over the graded rollouts", ["", ...keys.map(words), "reward", "coverage", "turns", "tokens", "seconds"],
    parts.map(([name, p]) => [name, ...keys.map((key) => String(p.denominators[key])), fixed(p.reward_mean, 3), fixed(p.coverage_mean, 3), fixed(p.turns, 1), fixed(p.tokens, 0), fixed(p.seconds, 2)]), "numbers");
}

function difficulty(groups) {
  const points = Object.entries(groups).map(([n, g]) => ({ x: Number(n), share: g.success, count: g.rollouts })).sort((a, b) => a.x - b.x);
  if (!points.length) return h("figure", {}, h("figcaption", {}, h("h3", {}, "Difficulty"), h("p", { class: "note" }, "The rows carry no note of their gold actions.")));
  return columnChart("Difficulty", "Share of rollouts that pass, by the task's number of gold actions.", "gold actions", points,
    dataTable("Success by number of gold actions", ["gold actions", "rollouts", "pass"], points.map((p) => [String(p.x), String(p.count), percent(p.share)])));
}

function tierAdvantages(index, tiers) {
  return h("div", {},
    dataTable(`Mean advantage of a tier's turns under each estimator (${options(index)})`,
      ["tier", "turns", ...index.estimators],
      Object.entries(tiers).map(([name, t]) => [words(name), String(t.turns), ...index.estimators.map((e) => heat(t.advantages[e]))]), "numbers"),
    h("p", { class: "note" }, "Blue cells reinforce, orange ones suppress; the sign says the same. A group of one rollout has no advantage."));
}
