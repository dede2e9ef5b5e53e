// The table of a cohort's or a batch's page: filters, sorting, pages of rows and drill-down.
// What learners wrote reaches the page as text nodes only.

const NONE = "–";
const data = {}; // the embedded data, once it is unpacked
const find = (selector) => document.querySelector(selector);
const collator = new Intl.Collator("en", { numeric: true });

function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value);
  }
  element.append(...inside.filter((part) => part !== null));
  return element;
}

const bdi = (text) => make("bdi", {}, text ?? NONE);
const wordy = (name) => name.replaceAll("_", " ");
const titled = (name) => data.titles[name] ?? wordy(name);
const checkTitle = (name) => {
  const [step, check] = name.split("/");
  return make("span", {}, titled(check), make("span", { class: "small" }, titled(step)));
};
const trimmed = (value) => value.toFixed(2).replace(/\.?0+$/, "");
const points = (value, most) => (value === null ? "no score" : trimmed(value)) + (most === null ? "" : ` of ${trimmed(most)}`);
const times = (value) => (value === null ? NONE : value >= 100 ? `${value.toPrecision(4)}×` : `${value.toFixed(2)}×`);
const perSecond = (value) => (value >= 10 ? Math.round(value).toLocaleString("en") : value.toPrecision(3));
const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + trimmed(Math.abs(value));

function moment(seconds) {
  const date = new Date((seconds ?? NaN) * 1000);
  return Number.isNaN(date.getTime()) ? NONE : `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function chip(outcome, group = "is") {
  return make("span", { class: `chip ${group}-${outcome}` }, make("span", { "aria-hidden": "true" }, data.marks[outcome] ?? "?"), ` ${wordy(outcome)}`);
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
}

// What a row says, looked up in the columns. Sides: 0 is the verdict from before, the last one is the newest.
function reader() {
  const { rows, sides, texts, checks, results, steps } = data;
  const word = (place) => (place < 0 ? null : texts[place]);
  const read = {
    both: sides.length > 1,
    count: rows.id.length,
    text: (name, row) => rows[name]?.[row] ?? null,
    word: (name, row) => (rows[name] ? word(rows[name][row]) : null),
    extra: (name, row) => rows[name]?.[row],
    there: (side, row) => sides[side].status[row] >= 0,
    of: (side, name, row) => sides[side][name][row],
    named: (side, name, row) => word(sides[side][name][row]),
    steps: (side, row) => (sides[side].steps[row] < 0 ? [] : steps[sides[side].steps[row]]),
    rates: (side, row) => Object.entries(sides[side].rates).map(([arm, column]) => [arm, column[row]]).filter(([, rate]) => rate),
    check(side, place, row) {
      const result = sides[side].checks[place]?.[row] ?? -1;
      if (result < 0) return null;
      const [outcome, code, score, most, tier, version] = results[result];
      return { outcome, code, score, most, tier, version };
    },
    names: checks,
    // Feedback of one check, or of the whole verdict under an empty name.
    said: (name, row) => texts[(rows.feedback?.[row] ?? []).find(([of]) => of === name)?.[1]] ?? null,
  };
  read.last = sides.length - 1;
  read.codes = (side, row) => {
    const codes = [read.named(side, "code", row)];
    checks.forEach((_, place) => codes.push(read.check(side, place, row)?.code ?? null));
    return codes;
  };
  read.moved = (row) => {
    if (!read.there(read.last, row)) return null;
    const [old, now] = [0, 1].map((side) => read.of(side, "score", row));
    return old === null || now === null ? null : now - old;
  };
  read.differing = (row) =>
    !read.there(read.last, row)
      ? []
      : checks.filter((_, place) => differ(read.check(0, place, row), read.check(1, place, row)));
  return read;
}

function differ(old, now) {
  if (!old || !now) return old !== now;
  return old.outcome !== now.outcome || old.score !== now.score || old.most !== now.most;
}

// One predicate per filter that has a value. A status or outcome of a verdict that is not there matches nothing.
function predicates(read, wanted) {
  const place = wanted.check ? read.names.indexOf(wanted.check) : -1;
  const has = (text, part) => (text ?? "").toLowerCase().includes(part);
  const status = (side, value) => (row) => read.there(side, row) && read.named(side, "status", row) === value;
  const outcome = (side, value) => (row) =>
    read.there(side, row) &&
    (place >= 0
      ? (read.check(side, place, row)?.outcome ?? "absent") === value
      : read.names.some((_, any) => read.check(side, any, row)?.outcome === value));
  const makers = {
    q: (value) => (row) => ["id", "learner", "filename"].some((name) => has(read.text(name, row), value.toLowerCase())),
    learner: (value) => (row) => has(read.text("learner", row), value.toLowerCase()),
    lab: (value) => (row) => read.word("lab", row) === value,
    cohort: (value) => (row) => read.word("cohort", row) === value,
    status: (value) => status(0, value),
    old: (value) => status(0, value),
    new: (value) => status(1, value),
    outcome: (value) => outcome(0, value),
    from: (value) => outcome(0, value),
    to: (value) => outcome(1, value),
    code: (value) => (row) => read.codes(read.last, row).includes(value),
    kind: (value) => (row) => (data.groups[value] ?? [value]).includes(read.word("kind", row)),
    check: () => (row) => [0, read.last].some((side) => read.check(side, place, row)),
  };
  // With an outcome beside it, a check is what that is asked of, and may be absent.
  const aside = wanted.outcome || wanted.from || wanted.to;
  return Object.entries(wanted)
    .filter(([name, value]) => value && makers[name] && !(name === "check" && aside))
    .map(([name, value]) => makers[name](value));
}

// What each column shows and is sorted by.
function columns(read) {
  const score = (side) => ({
    show: (row) => (read.there(side, row) ? points(read.of(side, "score", row), null) : NONE),
    by: (row) => read.of(side, "score", row),
  });
  const status = (side) => ({
    show: (row) => (read.there(side, row) ? chip(read.named(side, "status", row)) : NONE),
    by: (row) => read.named(side, "status", row),
  });
  const newest = read.last;
  return {
    id: { by: (row) => read.text("id", row) },
    learner: { show: (row) => make("span", { class: "clamped" }, bdi(read.text("learner", row))), by: (row) => read.text("learner", row) },
    lab: { show: (row) => read.word("lab", row), by: (row) => read.word("lab", row) },
    cohort: { show: (row) => bdi(read.word("cohort", row)), by: (row) => read.word("cohort", row) },
    status: status(newest), old: status(0), new: status(newest),
    score: score(newest),
    scores: {
      show: (row) => [0, newest].map((side) => (read.there(side, row) ? read.of(side, "score", row) : null))
        .map((value) => (value === null ? NONE : trimmed(value))).join(" → "),
      by: (row) => read.of(newest, "score", row),
    },
    code: {
      show: (row) => (read.there(newest, row) ? make("code", {}, read.named(newest, "code", row)) : NONE),
      by: (row) => read.named(newest, "code", row),
    },
    ratio: { show: (row) => times(read.of(newest, "ratio", row)), by: (row) => read.of(newest, "ratio", row) },
    received_at: { show: (row) => moment(read.text("received_at", row)), by: (row) => read.text("received_at", row) },
    kind: {
      show: (row) => chip(read.word("kind", row), "kind"),
      by: (row) => data.kinds.indexOf(read.word("kind", row)),
    },
    moved: { show: (row) => (read.moved(row) === null ? NONE : signed(read.moved(row))), by: read.moved },
    differing: { show: (row) => String(read.differing(row).length), by: (row) => read.differing(row).length },
  };
}

// Ascending or descending; what is absent comes last either way, and equal rows keep the order of their ids.
function sorted(rows, by, direction) {
  const keys = new Map(rows.map((row) => [row, by(row)]));
  return rows.sort((one, other) => {
    const [a, b] = [keys.get(one), keys.get(other)];
    if (a === null || b === null) return (a === null) - (b === null) || one - other;
    return direction * (typeof a === "string" ? collator.compare(a, b) : a - b) || one - other;
  });
}

function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== NONE);
  return make("dl", { class: "facts" }, ...shown.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value instanceof Node ? value : bdi(value)))));
}

function table(label, heads, rows) {
  const cells = ([first, ...rest], differs) =>
    make("tr", { class: differs ? "differs" : null }, make("th", { scope: "row" }, first), ...rest.map((cell) => make("td", {}, cell)));
  return make("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" },
    make("table", {},
      make("caption", { class: "quiet" }, label),
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map(({ cells: line, differs = false }) => cells(line, differs)))));
}

const code = (text) => make("code", {}, text);
const interval = (read, side, row) =>
  read.of(side, "ratio", row) === null
    ? NONE
    : `${times(read.of(side, "ratio", row))} (${times(read.of(side, "low", row))} to ${times(read.of(side, "high", row))})`;
const scoreOf = (read, side, row) => points(read.of(side, "score", row), read.of(side, "max_score", row));
const rateOf = (rate) => (rate ? `${perSecond(rate[0])} (${perSecond(rate[1])} to ${perSecond(rate[2])})` : NONE);
const headed = (heading, part) => [make("h4", {}, heading), part];

// One line per part of a verdict, one cell per side.
const PARTS = [
  ["Status", (read, side, row) => chip(read.named(side, "status", row))],
  ["Score", scoreOf],
  ["Code", (read, side, row) => code(read.named(side, "code", row))],
  ["Ratio (interval)", interval],
  ["Made", (read, side, row) => moment(read.of(side, "created_at", row))],
  ["Mode", (read, side, row) => read.named(side, "mode", row)],
  ["Lab version", (read, side, row) => read.named(side, "lab_version", row)],
  ["GPU", (read, side, row) => read.named(side, "gpu", row)],
  ["Run took", (read, side, row) => (read.of(side, "run_s", row) === null ? null : `${trimmed(read.of(side, "run_s", row))} s`)],
  ["GPU held", (read, side, row) => (read.of(side, "gpu_held_s", row) === null ? null : `${trimmed(read.of(side, "gpu_held_s", row))} s`)],
  ["Verdict id", (read, side, row) => code(read.of(side, "verdict_id", row))],
  ["Run id", (read, side, row) => code(read.of(side, "run_id", row))],
  ["Image digest", (read, side, row) => (read.named(side, "image_digest", row) === null ? null : code(read.named(side, "image_digest", row)))],
];

// What is new with every verdict, and so never worth a mark.
const PASSING = new Set(["Made", "Run took", "Verdict id", "Run id"]);

function checkCell(read, side, place, row) {
  const check = read.check(side, place, row);
  if (!check) return read.there(side, row) ? chip("absent") : NONE;
  const text = `${points(check.score, check.most)}${check.tier ? `, tier ${check.tier}` : ""}, version ${check.version}`;
  return make("div", {}, chip(check.outcome), " ", code(check.code), make("span", { class: "small" }, text));
}

function verdict(read, row, who) {
  const present = read.names.map((name, place) => [name, place]).filter(([, place]) => read.check(0, place, row));
  const rates = read.rates(0, row);
  const said = read.said("", row);
  return [
    facts([...who, ...PARTS.map(([name, show]) => [name, show(read, 0, row)])]),
    ...(said ? [make("p", { class: "said" }, bdi(said))] : []),
    ...headed("Steps", table("Steps", ["Step", "Outcome", "Points"], read.steps(0, row).map(([id, outcome, score, most]) => ({ cells: [titled(id), chip(outcome), points(score, most)] })))),
    ...headed("Checks", table("Checks", ["Check", "Outcome, code, points", ...(read.extra("feedback", row) ? ["Feedback"] : [])],
      present.map(([name, place]) => ({
        cells: [checkTitle(name), checkCell(read, 0, place, row), ...(read.extra("feedback", row) ? [make("span", { class: "said" }, bdi(read.said(name, row)))] : [])],
      })))),
    ...(rates.length ? headed("Images per second", table("Images per second", ["Arm", "Median (range)"], rates.map(([arm, rate]) => ({ cells: [titled(arm), rateOf(rate)] })))) : []),
  ];
}

function change(read, row, who) {
  const sides = [0, 1];
  const heads = (what) => [what, "Before", "After"];
  const there = read.there(1, row);
  const side = (show) => sides.map((of) => (read.there(of, row) ? (show(of) ?? NONE) : NONE));
  const said = (cell) => (cell instanceof Node ? cell.textContent : cell);
  const lines = PARTS.map(([name, show]) => side((of) => show(read, of, row)))
    .map((cells, place) => ({ cells: [PARTS[place][0], ...cells], differs: there && !PASSING.has(PARTS[place][0]) && said(cells[0]) !== said(cells[1]) }));
  const steps = [...new Set(sides.flatMap((of) => read.steps(of, row).map(([id]) => id)))].map((id) => {
    const found = sides.map((of) => read.steps(of, row).find(([name]) => name === id));
    const shown = found.map((step) => (step ? make("span", {}, chip(step[1]), ` ${points(step[2], step[3])}`) : NONE));
    return { cells: [titled(id), ...shown], differs: there && said(shown[0]) !== said(shown[1]) };
  });
  const differing = new Set(read.differing(row));
  const checks = read.names.map((name, place) => [name, place])
    .filter(([, place]) => sides.some((of) => read.check(of, place, row)))
    .map(([name, place]) => ({ cells: [checkTitle(name), ...sides.map((of) => checkCell(read, of, place, row))], differs: differing.has(name) }));
  const arms = [...new Set(sides.flatMap((of) => read.rates(of, row).map(([arm]) => arm)))].map((arm) => ({
    cells: [titled(arm), ...sides.map((of) => rateOf(read.rates(of, row).find(([name]) => name === arm)?.[1]))],
  }));
  const repeats = (read.extra("repeats", row) ?? []).map(([status, score]) => `${status} ${points(score, null)}`);
  return [
    facts([
      ...who,
      ["Level", { judge: "judged from stored evidence", run: "run again" }[read.word("level", row)]],
      ["Why", code(read.word("reason", row))],
      ["State", wordy(read.word("state", row))],
      ["Outdated", read.extra("outdated", row) ? "another verdict came in force; applying leaves it alone" : null],
      ["Handed in later", read.extra("newer", row) ? `${read.extra("newer", row)} of the same learner to the same lab` : null],
      ["Repetitions", repeats.length ? repeats.join(", ") : null],
      ["Our failure", read.word("error", row)],
    ]),
    make("p", { class: "small" }, "Lines with ≠ differ; ids and times always may."),
    ...headed("Verdict", table("Verdict before and after", heads("Part"), lines)),
    ...headed("Steps", table("Steps before and after", heads("Step"), steps)),
    ...headed("Checks", table("Checks before and after", heads("Check"), checks)),
    ...(arms.length ? headed("Images per second", table("Images per second before and after", heads("Arm"), arms)) : []),
  ];
}

function panel(read, row) {
  const who = [
    ["Learner", read.text("learner", row)], ["Cohort", read.word("cohort", row)], ["Lab", read.word("lab", row)],
    ["File", read.text("filename", row)], ["Submitted", moment(read.text("submitted_at", row))],
    ["Received", moment(read.text("received_at", row))],
  ];
  return make("div", { class: "panel" }, make("h3", {}, read.text("id", row)), ...(read.both ? change : verdict)(read, row, who));
}

function explore(read) {
  const form = find("#filters"), body = find("#rows tbody"), size = find("#size");
  const heads = [...document.querySelectorAll("#rows thead th")];
  const noun = find("#rows").dataset.noun;
  const shown = columns(read);
  const open = new Set();
  let chosen = [], page = 0, key = "id", direction = 1;

  function line(row) {
    const panelId = `verdict-${row}`;
    const button = make("button", { type: "button", class: "open", "aria-expanded": String(open.has(row)), "aria-controls": panelId }, read.text("id", row));
    const cells = heads.slice(1).map((head) => {
      const tight = ["received_at", "status", "old", "new", "kind"].includes(head.dataset.key) ? "tight" : null;
      return make("td", { class: head.className || tight }, shown[head.dataset.key].show(row));
    });
    const detail = make("tr", { class: "detail", id: panelId }, make("td", { colspan: heads.length }));
    const fill = () => {
      detail.hidden = !open.has(row);
      detail.firstChild.replaceChildren(...(open.has(row) ? [panel(read, row)] : []));
      button.setAttribute("aria-expanded", String(open.has(row)));
    };
    button.addEventListener("click", () => {
      if (!open.delete(row)) open.add(row);
      fill();
    });
    fill();
    return [make("tr", {}, make("th", { scope: "row" }, button), ...cells), detail];
  }

  function draw() {
    const each = Number(size.value), pages = Math.max(1, Math.ceil(chosen.length / each));
    page = Math.min(Math.max(page, 0), pages - 1);
    body.replaceChildren(...chosen.slice(page * each, (page + 1) * each).flatMap(line));
    find("#where").textContent = `Page ${page + 1} of ${pages.toLocaleString("en")}`;
    for (const [name, off] of [["first", page === 0], ["previous", page === 0], ["next", page === pages - 1], ["last", page === pages - 1]]) {
      find(`[data-page=${name}]`).setAttribute("aria-disabled", off); // and keeps the focus
    }
    const [from, to] = [page * each + 1, Math.min(chosen.length, (page + 1) * each)].map((end) => end.toLocaleString("en"));
    const rows = chosen.length ? ` Rows ${from} to ${to} are shown.` : read.count ? " Clear a filter to see more." : "";
    find("#count").textContent = `${chosen.length.toLocaleString("en")} of ${read.count.toLocaleString("en")} ${noun}.${rows}`;
  }

  function choose() {
    const controls = [...form.elements].filter((control) => control.name);
    const wanted = Object.fromEntries(controls.map(({ name, type, value }) => [name, type === "search" ? value.trim() : value]));
    for (const control of controls) control.classList.toggle("set", Boolean(wanted[control.name]));
    const all = predicates(read, wanted);
    const rows = Array.from({ length: read.count }, (_, row) => row).filter((row) => all.every((fits) => fits(row)));
    chosen = sorted(rows, shown[key].by, direction);
    page = 0;
    draw();
  }

  function pick(filters) {
    form.reset();
    for (const [name, value] of new URLSearchParams(filters)) form.elements[name].value = value;
    choose();
    find("#table-heading").focus({ preventScroll: true });
    find("#table-heading").scrollIntoView();
  }

  for (const head of heads) {
    head.firstChild.addEventListener("click", () => {
      direction = key === head.dataset.key ? -direction : 1;
      key = head.dataset.key;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      choose();
    });
  }
  for (const spot of document.querySelectorAll(".pick")) {
    const button = make("button", { type: "button", "aria-label": spot.dataset.label }, spot.textContent);
    button.addEventListener("click", () => pick(spot.dataset.pick));
    spot.replaceChildren(button);
  }
  let soon = 0;
  form.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(choose, 120); // while somebody types, the last letter is what counts
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(choose));
  size.addEventListener("change", () => { page = 0; draw(); });
  const turns = { first: () => 0, previous: () => page - 1, next: () => page + 1, last: () => Infinity };
  for (const [name, to] of Object.entries(turns)) {
    find(`[data-page=${name}]`).addEventListener("click", () => { page = to(); draw(); });
  }
  choose();
  find("#explorer").hidden = false;
}

try {
  Object.assign(data, await unpacked(find("#data").textContent));
  explore(reader());
} catch (problem) {
  find("#trouble").textContent = `The table could not be read (${problem.name}). A current browser shows it; the summary above is whole.`;
  find("#trouble").hidden = false;
}
