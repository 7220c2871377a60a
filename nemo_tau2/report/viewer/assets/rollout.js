// One rollout: verdict, credit, siblings, database, dialogue.

async function rolloutView(index, number, query) {
  const line = index.rollouts[number];
  if (!line) return [h("h1", { tabindex: "-1" }, "No such rollout"), h("p", {}, h("a", { href: "#rollouts" }, "All rollouts"))];
  const [view, members] = await Promise.all([block(`r${number}`), block(`g${line.group}`)]);
  const places = placesOf(index);
  const group = members.toSorted((a, b) => places[a.rollout] - places[b.rollout]);
  const credit = group.find((member) => member.rollout === number);
  const state = { measure: index.estimators.includes("gtpo_hybrid") ? "gtpo_hybrid" : index.estimators[0], beside: null };
  const siblings = h("div");
  const talk = h("div", { class: "columns" });
  const draw = async () => {
    siblings.replaceChildren(groupStrips(index, group, number, state.measure));
    talk.replaceChildren(...await columns(index, number, view, group, state));
  };
  await draw();
  const jump = (k) => { const turn = document.getElementById(`turn-${k}`); turn?.scrollIntoView({ block: "center" }); turn?.focus({ preventScroll: true }); };
  const others = group.filter((member) => member.rollout !== number);
  return [
    steps(index, number, query),
    h("h1", { tabindex: "-1" }, `${line.domain}, task ${line.task}, trial ${line.trial}`),
    h("p", { class: "facts" }, outcomeTag(line.outcome), ` reward ${fixed(line.reward)} · ended by ${words(line.stop)} · ${line.turns} turns · ${line.calls} calls, ${line.errors} failed`),
    section("verdict", "Verdict", verdict(view)),
    section("credit", "Credit per turn", creditStrips(credit, jump), tierLegend(new Set([...group.flatMap((member) => member.tiers), ...callTiers(view)])),
      h("p", { class: "note" }, `Advantages within its group of ${group.length}, with ${options(index)}: the estimators' defaults, whatever the run was trained with.`),
      line.outcome === "masked" ? h("p", { class: "note" }, "A masked rollout takes no part in its group and teaches nothing.") : null),
    section("group", "Siblings", choice("Show", ["tier", "reward", ...index.estimators], state.measure,
      (value) => { state.measure = value; draw(); }, { id: "measure" }), siblings),
    section("database", "Database against gold", databaseDiff(view.reward_info)),
    section("dialogue", "Dialogue",
      h("div", { class: "filters" },
        choice("Beside it", [["", "nothing"], ...others.map((m) => [m.rollout, `trial ${index.rollouts[m.rollout].trial}, ${index.rollouts[m.rollout].outcome}`])], "",
          (value) => { state.beside = value === "" ? null : Number(value); draw(); }, { id: "beside" }),
        h("button", { type: "button", click: () => fold(talk, true) }, "Unfold all calls"),
        h("button", { type: "button", click: () => fold(talk, false) }, "Fold all calls")),
      prompt(line), talk),
    view.tool_changes.length ? section("tools", "Tools that came and went", toolChanges(view.tool_changes)) : null,
    view.user_calls.length ? section("usercalls", "What the user did", view.user_calls.map(userCall)) : null,
    view.gold_actions ? section("gold", "Gold actions", view.gold_actions.length
      ? h("ol", { start: "0" }, view.gold_actions.map((a) => h("li", {}, h("code", {}, `${a.name}(${JSON.stringify(a.arguments)})`), a.actor === "user" ? " by the user" : "", a.errored ? ", fails on the gold path" : "")))
      : h("p", {}, "None: the task is to do nothing.")) : null,
  ];
}

const callTiers = (view) => view.dialogue.flatMap((item) => item.tier ?? []);
const options = (index) => `γ = ${index.options.gamma}, λ = ${index.options.lambda}, ${index.options.norm}`;

const section = (id, title, ...content) => h("section", { "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...content);
const fold = (place, open) => place.querySelectorAll("details.call").forEach((call) => { call.open = open; });

function steps(index, number, query) {
  const order = selection(index, query);
  const at = order.indexOf(number);
  const to = (place, text) => (at >= 0 && order[place] !== undefined ? h("a", { href: `#rollout/${order[place]}?${query}` }, text) : h("span", { class: "faint" }, text));
  return h("nav", { "aria-label": "Rollouts", class: "steps" }, h("a", { href: `#rollouts?${query}` }, "All rollouts"),
    to(at - 1, "Previous"), to(at + 1, "Next"), at >= 0 ? `${at + 1} of ${order.length}` : null);
}

function verdict(view) {
  const info = view.reward_info;
  const finding = (f) => h("li", {}, h("strong", {}, words(f.kind)), f.about ? ` ${f.about}` : "", f.evidence ? `: ${f.evidence}` : "");
  const checks = [
    ...Object.entries(info.breakdown ?? {}).map(([basis, value]) => [`${basis} (component)`, value >= 1, fixed(value)]),
    ...(info.env_assertions ?? []).map((c) => [c.assertion, c.met, c.note ?? ""]),
    ...(info.actions ?? []).map((c) => [`action ${c.name}`, c.met, ""]),
    ...(info.state_diff ?? []).map((c) => ["state of the world", false, c]),
    ...(info.kind === "state_equivalence" && !info.state_diff?.length ? [["state of the world", true, "as it should end"]] : []),
    ...(typeof info.match === "number" ? [["the call asked for", info.match >= 1, fixed(info.match)], ["its gate", info.gate >= 1, fixed(info.gate)]] : []),
    ...(info.duplicates?.length ? [["no call repeated in a row", false, `${info.duplicates.length} repeated`]] : []),
    ...(info.communicate ?? []).map((c) => [`says ${c.info}`, c.met, ""]),
    ...(info.nl_assertions ?? []).map((c) => [c.assertion ?? c.nl_assertion ?? "assertion", c.met, c.justification ?? c.reason ?? ""])];
  return h("div", {},
    view.failure ? h("p", { class: "warnings" }, `${words(view.failure.kind)}: ${view.failure.message}`) : null,
    view.blame ? h("p", {}, "Owed to ", h("strong", {}, words(view.blame.kind)), view.blame.about ? ` (${words(view.blame.about)})` : "", view.blame.by === "judge" ? " by the judge" : "", view.blame.evidence ? `: ${view.blame.evidence}` : "") : null,
    view.findings.length ? h("div", {}, h("h3", {}, "Patterns"), h("ul", {}, view.findings.map(finding))) : null,
    view.questions.length ? questions(view) : null,
    checks.length ? dataTable("What the reward is made of", ["check", "met", ""], checks.map(([name, met, note]) => [String(name), met ? "✓ yes" : "✗ no", String(note)])) : null,
    info.left_out?.length ? h("p", { class: "note" }, `Left out of the reward: ${info.left_out.join(", ")}.`) : null);
}

/** The customer's questions: the judge's word, and whether with the evidence they count as resolved. */
function questions(view) {
  const yes = (value) => (value === null ? "–" : value ? "✓ yes" : "✗ no");
  return dataTable(`The customer's questions: ${percent(view.reward_info.coverage)} resolved`, ["question", "judged answered", "resolved"],
    view.questions.map((q) => [`${q.number}. ${q.text}`, yes(q.judged), yes(q.resolved)]));
}

/** A row per change: from which turn on, what was added and taken away, and how many tools then. */
function toolChanges(changes) {
  const names = (list) => (list.length ? list.map((name, i) => [i ? ", " : "", h("code", {}, name)]) : "–");
  return dataTable("Where the visible tools changed", ["from turn", "added", "gone", "visible"],
    changes.map((c) => [String(c.turn), names(c.added), names(c.gone), String(c.visible)]));
}

function prompt(line) {
  const place = h("div");
  const details = h("details", { class: "prompt", toggle: async () => {
    if (!details.open || place.childElementCount) return;
    const context = await block(`c${line.context}`);
    place.replaceChildren(h("pre", {}, context.prompt), h("h3", {}, `${context.tools.length} tools`),
      h("dl", {}, context.tools.map((tool) => [h("dt", {}, h("code", {}, tool.name)), h("dd", {}, tool.description)])));
  } }, h("summary", {}, "System prompt and tools"), place);
  return details;
}

async function columns(index, number, view, group, state) {
  const shown = [number, ...(state.beside === null ? [] : [state.beside])];
  return Promise.all(shown.map(async (i) => {
    const credit = group.find((member) => member.rollout === i);
    const { dialogue } = i === number ? view : await block(`r${i}`);
    const title = shown.length > 1 ? h("h3", {}, `trial ${index.rollouts[i].trial} `, outcomeTag(index.rollouts[i].outcome)) : null;
    return h("div", { class: "dialogue" }, title, dialogueItems(dialogue, credit, state.measure, i === number, shown.length > 1 ? "h4" : "h3"));
  }));
}

/** Items in order; the policy's are grouped under a heading per turn with its tier and credit. */
function dialogueItems(items, credit, measure, current, level) {
  const estimator = credit.advantages[measure] ? measure : null;
  let turn = null;
  let place = null;
  const shown = [];
  for (const item of items) {
    if (typeof item.turn !== "number") { turn = null; shown.push(dialogueItem(item)); continue; }
    if (item.turn !== turn) {
      turn = item.turn;
      const value = estimator ? credit.advantages[estimator][turn] : credit.rewards[turn];
      place = h("article", { class: `turn ${TINTS[sign(value) + 1]}`, "aria-label": `turn ${turn}, policy` },
        h(level, current ? { id: `turn-${turn}`, tabindex: "-1" } : {}, `Turn ${turn} `, tierTag(credit.tiers[turn]), ` ${words(credit.tiers[turn])}`),
        h("p", { class: "facts" }, "reward ", heat(credit.rewards[turn], 1), estimator ? [` ${estimator} `, heat(credit.advantages[estimator][turn])] : null));
      shown.push(place);
    }
    place.append(dialogueItem(item));
  }
  return shown.length ? shown : h("p", {}, "Nothing was said.");
}

function dialogueItem(item) {
  if (item.kind === "call") return callItem(item.name, item.arguments, item.result, item.tier, "call");
  if (item.kind === "result") return h("details", { class: "call" }, h("summary", {}, "result of no known call"), h("pre", {}, pretty(item.result)));
  if (item.kind === "reasoning") return h("details", { class: "reasoning" }, h("summary", {}, "reasoning"), h("p", { class: "text" }, item.text));
  return h("div", { class: `message ${item.role === "assistant" ? "assistant" : "user"}` }, h("span", { class: "who" }, item.role), h("p", { class: "text" }, item.text));
}

function callItem(name, args, result, tier, verb) {
  return h("details", { class: "call" },
    h("summary", {}, tier ? [tierTag(tier), " "] : null, h("code", {}, name), h("span", { class: "faint" }, ` ${args.length > 80 ? `${args.slice(0, 80)}…` : args}`)),
    h("p", { class: "who" }, `${verb}: arguments`), h("pre", {}, pretty(args)), h("p", { class: "who" }, "result"), h("pre", {}, result === null ? "none" : pretty(result)));
}

const userCall = (call) => callItem(String(call.name), JSON.stringify(call.arguments ?? {}), String(call.output ?? ""), call.tier, `user, turn ${call.turn}`);

/** JSON indented, other text as it is. */
function pretty(text) {
  const value = parsed(text);
  return value !== null && typeof value === "object" ? JSON.stringify(value, null, 2) : text;
}
