// A question by choosing: measures, groups and filters become SQL, which is shown.
import { make } from "./page.js";

const MEASURES = [
  ["COUNT(*)", "number of rows", () => false],
  ["PERSONS", "number of persons", () => false],
  ["AVG", "average of", (of) => isNumber(of) || of.type === "bool"],
  ["SUM", "sum of", (of) => isNumber(of) || of.type === "bool"],
  ["MEDIAN", "median of", isNumber],
  ["STDDEV", "standard deviation of", isNumber],
];
const OPERATORS = { text: ["=", "<>"], number: [">=", "<=", "=", ">", "<"], time: [">=", "<="], bool: ["="] };
const PERIODS = ["day", "week", "month", "quarter", "year"];

function isNumber(of) { return of.type === "int" || of.type === "float" || of.type === "decimal"; }
const isTime = (of) => of.type === "date" || of.type === "datetime" || of.type === "timestamp";
const kind = (of) => (isNumber(of) ? "number" : isTime(of) ? "time" : of.type === "bool" ? "bool" : "text");

/** A name as SQL takes it. */
export const quoted = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

function literal(of, value) {
  if (typeof of.values?.find((each) => String(each) === value) === "number") return value;
  if (isNumber(of) && /^-?\d+(\.\d+)?$/.test(value.trim())) return value.trim();
  if (of.type === "bool") return value.toLowerCase() === "false" ? "FALSE" : "TRUE";
  return `'${value.replaceAll("'", "''")}'`;
}

/** SQL from choices. */
export function written(table, { measure, column, groups, filters }) {
  const keys = groups.map(({ name, by }) => {
    const of = table.columns[name];
    if (by && isTime(of)) return [`DATE_TRUNC('${by}', ${quoted(name)})`, by];
    if (by && isNumber(of)) return [`BUCKET(${quoted(name)}, ${by})`, `${name}_from`];
    return [quoted(name), null];
  });
  const value = measure === "PERSONS" ? `COUNT(DISTINCT ${quoted(table.person)}) AS persons`
    : measure === "COUNT(*)" ? "COUNT(*) AS n" : `${measure}(${quoted(column)}) AS ${quoted(`${measure.toLowerCase()}_${column}`)}`;
  const outputs = [...keys.map(([text, name]) => (name ? `${text} AS ${quoted(name)}` : text)), value];
  let sql = `SELECT ${outputs.join(", ")}\nFROM ${quoted(table.name)}`;
  const tests = filters.filter((one) => one.value !== "").map((one) => `${quoted(one.name)} ${one.operator} ${literal(table.columns[one.name], one.value)}`);
  if (tests.length) sql += `\nWHERE ${tests.join(" AND ")}`;
  if (keys.length) sql += `\nGROUP BY ${keys.map(([text, name]) => (name ? quoted(name) : text)).join(", ")}`;
  return sql;
}

const options = (select, pairs, chosen) => {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
};

/** Put the builder into an element; `write` gets the SQL after each choice. */
export function builder(root, tables, write) {
  const open = tables.filter((table) => !table.public);
  const tableBox = make("select", { id: "b-table" });
  const measureBox = make("select", { id: "b-measure" });
  const columnBox = make("select", { id: "b-column", "aria-label": "column to measure" });
  const groupList = make("div", { class: "stack" });
  const filterList = make("div", { class: "stack" });
  options(tableBox, open.map((table) => [table.name, table.name]));
  const table = () => open.find((one) => one.name === tableBox.value) || open[0];
  const names = () => Object.keys(table().columns);

  const say = () => {
    const groups = [...groupList.children].map((row) => ({ name: row.name.value, by: row.by.hidden ? "" : row.by.value }));
    const filters = [...filterList.children].map((row) => ({ name: row.name.value, operator: row.operator.value, value: row.value.value }));
    if (!columnBox.hidden && !columnBox.value) return;
    write(written(table(), { measure: measureBox.value, column: columnBox.value, groups, filters }));
  };
  const measured = () => {
    const test = MEASURES.find(([name]) => name === measureBox.value)[2];
    const fitting = names().filter((name) => test(table().columns[name]));
    columnBox.hidden = !fitting.length;
    options(columnBox, fitting.map((name) => [name, name]), columnBox.value);
  };
  const remove = (row, what) => {
    const button = make("button", { type: "button", class: "quiet", "aria-label": `Remove this ${what}` }, "×");
    button.addEventListener("click", () => { row.remove(); say(); });
    return button;
  };
  const addGroup = () => {
    const row = make("div", { class: "row" });
    row.name = make("select", { "aria-label": "group by" });
    row.by = make("select", { "aria-label": "in steps of" });
    options(row.name, names().map((name) => [name, name]));
    const steps = () => {
      const of = table().columns[row.name.value];
      const wide = isNumber(of) && of.min !== undefined && of.max !== undefined ? Number(of.max) - Number(of.min) : 100;
      const unit = 10 ** Math.floor(Math.log10(Math.max(wide, 1) / 10));
      const pairs = isTime(of) ? PERIODS.map((each) => [each, `by ${each}`])
        : isNumber(of) && !of.values ? [1, 2, 5, 10].map((each) => [String(Number((each * unit).toPrecision(3))), `in steps of ${Number((each * unit).toPrecision(3))}`]) : [];
      row.by.hidden = !pairs.length;
      options(row.by, pairs, isTime(of) ? "month" : undefined);
    };
    row.name.addEventListener("change", () => { steps(); say(); });
    row.by.addEventListener("change", say);
    row.append(row.name, row.by, remove(row, "group"));
    steps();
    groupList.append(row);
    say();
  };
  const addFilter = () => {
    const row = make("div", { class: "row" });
    row.name = make("select", { "aria-label": "filter by" });
    row.operator = make("select", { "aria-label": "comparison" });
    row.place = make("span");
    options(row.name, names().map((name) => [name, name]));
    const values = () => {
      const of = table().columns[row.name.value];
      options(row.operator, OPERATORS[kind(of)].map((each) => [each, each]));
      if (of.values || of.type === "bool") {
        row.value = make("select", { "aria-label": "value" });
        options(row.value, (of.values || ["true", "false"]).map((each) => [String(each), String(each)]));
      } else row.value = make("input", { "aria-label": "value", size: 10, type: of.type === "date" ? "date" : "text" });
      row.value.addEventListener("input", say);
      row.place.replaceChildren(row.value);
    };
    row.name.addEventListener("change", () => { values(); say(); });
    row.operator.addEventListener("change", say);
    row.append(row.name, row.operator, row.place, remove(row, "filter"));
    values();
    filterList.append(row);
    say();
  };
  const restart = () => {
    const fitting = MEASURES.filter(([name, , test]) => (name === "PERSONS" ? table().person : name === "COUNT(*)" || names().some((each) => test(table().columns[each]))));
    options(measureBox, fitting.map(([name, text]) => [name, text]), measureBox.value);
    groupList.replaceChildren();
    filterList.replaceChildren();
    measured();
  };
  tableBox.addEventListener("change", () => { restart(); say(); });
  measureBox.addEventListener("change", () => { measured(); say(); });
  columnBox.addEventListener("change", say);
  const moreGroups = make("button", { type: "button", class: "second small" }, "Group by …");
  const moreFilters = make("button", { type: "button", class: "second small" }, "Only where …");
  moreGroups.addEventListener("click", addGroup);
  moreFilters.addEventListener("click", addFilter);
  restart();
  moreGroups.hidden = moreFilters.hidden = !names().length;
  const first = make("div", { class: "row" }, make("label", { class: "inline", for: "b-measure" }, "Show the"), measureBox, columnBox);
  if (open.length > 1) first.prepend(make("label", { class: "inline", for: "b-table" }, "Of"), tableBox);
  root.replaceChildren(first, groupList, filterList, make("div", { class: "row" }, moreGroups, moreFilters));
  return say;
}
