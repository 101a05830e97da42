// The workbench: editor, builder, and a price that one sees before paying it. Everything shown here is free and from public facts.
import {
  EditorState, EditorView, HighlightStyle, SQLDialect, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap,
  completionKeymap, defaultKeymap, drawSelection, highlightSpecialChars, history, historyKeymap, keymap, lintKeymap, setDiagnostics,
  sql as sqlLanguage, syntaxHighlighting, tags,
} from "./editor.js";
import { builder, quoted } from "./builder.js";
import { draw, drawCurve, shown } from "./chart.js";
import { given, make, study as lookUp } from "./page.js";

const byId = (id) => document.getElementById(id);
const [form, facts, text] = [byId("asking"), given("facts"), byId("sql")];
const find = (what, fields, signal) => lookUp(form.dataset.dataset, { what, sql: text.value, ...fields }, signal);
const percent = (share) => new Intl.NumberFormat(undefined, { style: "percent", maximumSignificantDigits: 2 }).format(share);

// --- the editor

const AGGREGATES = ["COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE", "STDDEV", "VARIANCE", "MODE", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "COVAR_SAMP", "COVAR_POP", "COUNT_IF"];
const FUNCTIONS = ["BUCKET", "CLAMP", "ABS", "ROUND", "FLOOR", "CEIL", "LN", "LOG10", "EXP", "SQRT", "POWER", "LEAST", "GREATEST", "COALESCE", "NULLIF", "LOWER", "UPPER", "LENGTH", "SUBSTR", "CONCAT", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "DATE_PART", "DATE_TRUNC", "TIME_BUCKET", "DAYNAME", "MONTHNAME", "DATE_DIFF"];
const KEYWORDS = "select from where group by having order limit offset as and or not in between like ilike is null case when then else end join left using on with union all exists over partition filter distinct cast date timestamp true false cube rollup grouping sets desc asc if";
const dialect = SQLDialect.define({ keywords: KEYWORDS, builtin: [...AGGREGATES, ...FUNCTIONS].join(" ").toLowerCase(), types: "integer bigint double", doubleDollarQuotedStrings: false, identifierQuotes: '"' });

function words(context) {
  const word = context.matchBefore(/["'\w.]*$/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const before = context.state.sliceDoc(0, word.from);
  const found = [];
  const compared = before.match(/("?)([\w ]+)\1\s*(?:=|<>|!=|\bIN\s*\((?:[^()]*,)?)\s*$/i);
  for (const table of facts.tables) {
    found.push({ label: table.name, apply: quoted(table.name), type: "class", detail: table.public ? "public table" : "table", boost: 10 });
    for (const [name, of] of Object.entries(table.columns)) {
      found.push({ label: name, apply: quoted(name), type: "property", detail: of.type, boost: 20 });
      if (of.values && (!compared || compared[2].trim().toLowerCase() === name.toLowerCase())) {
        for (const value of of.values.slice(0, 200)) {
          const written = typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
          found.push({ label: written, type: "constant", detail: name, boost: compared ? 50 : -50 });
        }
      }
    }
  }
  AGGREGATES.forEach((name, i) => found.push({ label: name, apply: name === "COUNT" ? "COUNT(*)" : `${name}(`, type: "function", detail: "aggregate", boost: 9 - i }));
  for (const name of FUNCTIONS) found.push({ label: name, apply: `${name}(`, type: "function", boost: -20 });
  for (const name of ["SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "AND", "OR", "NOT", "IN", "BETWEEN", "AS", "DISTINCT"]) found.push({ label: name, type: "keyword", boost: -30 });
  return { from: word.from, options: found, validFor: /^["'\w.]*$/ };
}

const look = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--second)" },
  { tag: tags.standard(tags.name), color: "var(--accent-deep)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
]);

const editor = new EditorView({
  parent: byId("editor"),
  state: EditorState.create({
    doc: text.value,
    extensions: [
      highlightSpecialChars(), history(), drawSelection(), bracketMatching(), closeBrackets(), EditorView.lineWrapping,
      EditorView.cspNonce.of(form.dataset.nonce), EditorView.contentAttributes.of({ "aria-label": "Question in SQL", spellcheck: "false", autocapitalize: "off" }),
      syntaxHighlighting(look), sqlLanguage({ dialect }), autocompletion({ override: [words], icons: false }),
      keymap.of([
        { key: "Mod-Enter", run: () => { form.requestSubmit(byId("ask")); return true; } },
        ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap,
      ]),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        text.value = update.state.doc.toString();
        soon();
      }),
    ],
  }),
});
text.hidden = true;
byId("sql-label").hidden = true;
byId("editor").hidden = false;

const put = (sql) => editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: sql } });

// --- the builder

const [ways, panel] = [byId("ways"), byId("builder")];
ways.hidden = !facts.tables.some((table) => !table.public);
let rewrite = null;
for (const button of ways.querySelectorAll("button")) {
  button.addEventListener("click", () => {
    for (const other of ways.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
    panel.hidden = button.dataset.way !== "builder";
    if (!panel.hidden && !rewrite) rewrite = builder(panel, facts.tables, put);
  });
}

// --- refusals, where they are

const told = byId("told");
function tell(problem) {
  const marks = [];
  told.replaceChildren();
  if (problem) {
    const whole = !problem.rule || problem.code === "budget-exceeded";
    const box = make("div", { class: "notice bad small", role: "status" }, make("p", {}, whole ? problem.detail : `${problem.value ? `${problem.value}: ` : ""}${problem.rule}.`));
    if (problem.hint && !whole) box.append(make("p", {}, problem.hint));
    if (problem.place) {
      const length = editor.state.doc.length;
      const [from, to] = problem.place.map((each) => Math.min(each, length));
      const mark = { from, to: Math.max(to, Math.min(from + 1, length)), severity: "error", message: `${problem.rule}. ${problem.hint || ""}` };
      if (problem.instead) {
        const fix = () => editor.dispatch({ changes: { from, to, insert: problem.instead } });
        const button = make("button", { type: "button", class: "second" }, `Write ${problem.instead}`);
        button.addEventListener("click", () => { fix(); editor.focus(); });
        box.append(button);
        mark.actions = [{ name: `Write ${problem.instead}`, apply: fix }];
      }
      marks.push(mark);
    }
    told.append(box);
  }
  editor.dispatch(setDiagnostics(editor.state, marks));
}

// --- the price

const [slider, within, share, which] = ["slider", "within", "percent", "which"].map(byId);
const [epsilonField, said, same, why, ask] = ["epsilon", "said", "same", "why", "ask"].map(byId);
const planned = document.querySelector(".bar .plan");
let points = [];
let sketch = null;
let mark = () => {};
let epsilon = Number(epsilonField.value) || null;
let running = null;
let timer;

const soon = () => { clearTimeout(timer); timer = setTimeout(study, 200); };
const names = () => Object.keys(points[0]?.errors || {}).filter((name) => points.some((point) => point.errors[name] !== null));
const measured = () => (which.value && names().includes(which.value) ? which.value : names()[0]);

/** A number between two neighbours of the curve, straight on logarithmic axes. */
function between(x, pick, other) {
  const known = points.filter((point) => pick(point) > 0 && other(point) > 0);
  if (!known.length) return null;
  const rising = pick(known[known.length - 1]) >= pick(known[0]);
  let i = known.findIndex((point) => (rising ? pick(point) >= x : pick(point) <= x));
  if (i < 0) i = known.length - 1;
  if (i === 0) i = Math.min(1, known.length - 1);
  const [a, b] = [known[Math.max(i - 1, 0)], known[i]];
  const [x1, x2, y1, y2] = [pick(a), pick(b), other(a), other(b)].map(Math.log);
  return Math.exp(x1 === x2 ? y1 : y1 + ((Math.log(x) - x1) / (x2 - x1)) * (y2 - y1));
}
const priceOf = (point) => point.price;
const errorAt = (value, name) => between(value, priceOf, (point) => point.errors[name]);
const takesAt = (value) => between(value, priceOf, (point) => point.takes);

/** All that follows from a price, drawn at once. */
function show(value, source) {
  if (!points.length || !(value > 0)) return;
  epsilon = Number(value.toPrecision(3));
  epsilonField.value = String(epsilon);
  const [low, high] = [Math.log(points[0].price), Math.log(points[points.length - 1].price)];
  if (source !== "slider") slider.value = String(Math.round((1000 * (Math.log(epsilon) - low)) / (high - low)));
  const [takes, name] = [takesAt(epsilon), measured()];
  const error = name ? errorAt(epsilon, name) : null;
  if (source !== "share") share.value = takes ? inLocale(100 * takes) : "";
  if (source !== "within") within.value = error ? inLocale(error) : "";
  within.disabled = !name;
  slider.setAttribute("aria-valuetext", `${error ? `${name} within ± ${shown(error, error, error >= 10)}, ` : ""}${percent(takes)} of my budget`);
  said.replaceChildren(...(error ? [make("strong", {}, `± ${shown(error, error, error >= 10)}`), ` for ${name}, `] : []), make("strong", {}, percent(takes)), " of your budget, epsilon ", String(epsilon));
  if (!name) said.append(make("span", { class: "soft small" }, ". How large the error is depends on the data; below it is that of made-up rows."));
  const fits = takes <= facts.left + 1e-12;
  if (!fits) said.append(make("span", { class: "bad" }, ". It does not fit into what is left."));
  ask.disabled = !fits;
  planned?.setAttribute("width", String(100 * Math.min(takes, facts.left)));
  planned?.setAttribute("x", String(100 * (1 - facts.left)));
  why.hidden = !(facts.approval !== null && epsilon > facts.approval);
  mark(takes, error);
  imagine();
}

/** The made-up answer with the error bars of the price. */
function imagine() {
  if (!sketch) return;
  const columns = sketch.columns.map((column) => {
    if (column.type !== "estimate") return column;
    const fixed = errorAt(epsilon, column.name);
    const width = (i) => fixed ?? (Math.max(column.high[i] - column.value[i], column.value[i] - column.low[i]) * sketch.epsilon) / epsilon;
    const moved = (sign) => column.value.map((value, i) => (value === null ? null : value + sign * width(i)));
    return { ...column, low: moved(-1), high: moved(1) };
  });
  byId("sketch-card").hidden = !draw(byId("sketch"), { columns });
}

/** A stored answer, as the server tells it, for charts. */
function readable(answer) {
  const number = (value) => (typeof value === "number" ? value : null);
  return answer.columns.map((column) => {
    if ("estimate" in column) return { name: column.estimate, type: "estimate", integer: column.integer, value: column.value.map(number), low: column.low.map(number), high: column.high.map(number) };
    const values = column.values.map((value) => (value && typeof value === "object" ? Object.values(value)[0] : value));
    const time = column.values.some((value) => value && typeof value === "object" && ("date" in value || "datetime" in value || "timestamp" in value));
    const first = values.find((value) => value !== null);
    return { name: column.key ?? column.value ?? "", type: "key", values, form: time ? "time" : typeof first === "number" ? "number" : "text" };
  });
}

async function study() {
  running?.abort();
  const turn = (running = new AbortController());
  same.hidden = true;
  try {
    const began = performance.now();
    const found = await find("curve", {}, turn.signal);
    document.documentElement.dataset.curveMs = String(Math.round(performance.now() - began));
    points = found.map((point) => ({ ...point, price: ratio(point.epsilon) })).filter((point) => point.takes > 0);
    tell(null);
    byId("pricing").hidden = !points.length;
    if (!points.length) {
      ask.disabled = false;
      epsilonField.value ||= "1";
      same.textContent = "It is free: it is about public tables only.";
      same.hidden = false;
      return;
    }
    which.replaceChildren(...names().map((name) => make("option", { value: name }, name)));
    byId("within-of").hidden = names().length < 2;
    mark = drawCurve(byId("curve"), points.map((point) => ({ takes: point.takes, error: point.errors[measured()] })), measured(), percent);
    show(epsilon && epsilon <= points[points.length - 1].price * 1.001 ? epsilon : points[Math.floor(points.length * 0.55)].price);
    const made = await find("sketch", {}, turn.signal);
    sketch = { columns: readable(made.answer), epsilon: made.epsilon };
    imagine();
    await known(turn.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    points = [];
    sketch = null;
    byId("sketch-card").hidden = true;
    byId("pricing").hidden = true;
    ask.disabled = true;
    tell(error.problem || { rule: "the server does not answer", hint: "Try again in a moment." });
  }
}

const ratio = (text) => { const [over, under] = String(text).split("/").map(Number); return under ? over / under : over; };

/** Whether it was answered before at this price. */
async function known(signal) {
  const found = await find("preview", { epsilon: epsilonField.value }, signal);
  same.textContent = "You asked this before at this price: it is free.";
  same.hidden = !found.answered_before;
}
let asked;
const knownSoon = () => { clearTimeout(asked); asked = setTimeout(() => known().catch(() => {}), 400); };

slider.addEventListener("input", () => {
  const [low, high] = [Math.log(points[0].price), Math.log(points[points.length - 1].price)];
  show(Math.exp(low + (slider.value / 1000) * (high - low)), "slider");
  knownSoon();
});
const parts = new Intl.NumberFormat().formatToParts(12345.6);
const [group, point] = ["group", "decimal"].map((type) => parts.find((part) => part.type === type)?.value ?? "");
const inLocale = (value) => new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2, useGrouping: false }).format(value);

/** A number as the reader writes it; NaN rather than a guess. */
function read(field) {
  const text = field.value.trim();
  const whole = group && text.split(point)[0].split(group);
  if (whole && whole.length > 1 && whole.slice(1).every((each) => each.length === 3)) return Number(text.replaceAll(group, "").replace(point, "."));
  return Number(text.replace(point, "."));
}
within.addEventListener("change", async () => {
  const error = read(within);
  if (!(error > 0)) return;
  try {
    const found = await find("preview", { error: String(error), of: measured() });
    show(ratio(found.epsilon), "within");
    tell(null);
  } catch (refused) { if (refused.problem) tell({ ...refused.problem, place: null }); }
});
share.addEventListener("change", () => {
  const wanted = read(share) / 100;
  if (wanted > 0) show(between(wanted, (point) => point.takes, priceOf), "share");
  knownSoon();
});
epsilonField.addEventListener("change", () => { show(ratio(epsilonField.value.trim()), "field"); knownSoon(); });
which.addEventListener("change", () => {
  mark = drawCurve(byId("curve"), points.map((point) => ({ takes: point.takes, error: point.errors[measured()] })), measured(), percent);
  show(epsilon);
});
form.addEventListener("keydown", (event) => {  // Enter in a field is no order to pay
  if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
  event.preventDefault();
  event.target.dispatchEvent(new Event("change", { bubbles: true }));
});
form.addEventListener("submit", () => { ask.textContent = "Asking …"; setTimeout(() => { ask.disabled = true; }); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
for (const node of document.querySelectorAll(".noscript")) node.hidden = true;
byId("error").value = "";

if (facts.problem) tell(facts.problem);
if (!facts.problem || facts.problem.code === "budget-exceeded") study();
document.documentElement.dataset.ready = "workbench";
