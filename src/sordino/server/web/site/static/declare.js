// Reads the names and types of a file's columns in the browser. The file is not sent anywhere, and no cell is read:
// of a CSV file the first line, of a Parquet file the schema at the head of its footer.

const node = (id) => document.getElementById(id);

async function csvColumns(file) {
  const head = await file.slice(0, 1 << 20).text();
  const line = head.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/, 1)[0];
  if (line.length === head.length && file.size > head.length) throw new Error("Its first line is longer than 1 MiB.");
  const names = [];
  let name = "", quoted = false;
  for (let i = 0; i <= line.length; i++) {
    const c = line[i];
    if (quoted && c === '"' && line[i + 1] === '"') { name += c; i++; }
    else if (c === '"') quoted = !quoted;
    else if (c === undefined || (c === "," && !quoted)) { names.push(name.trim()); name = ""; }
    else name += c;
  }
  return names.map((one) => [one, "text"]);
}

/** Thrift's compact protocol, as far as a Parquet schema needs it. */
class Compact {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }
  byte() { if (this.at >= this.bytes.length) throw new Error("It ends too early."); return this.bytes[this.at++]; }
  varint() {
    let value = 0, scale = 1;
    for (let i = 0; i < 10; i++) {
      const b = this.byte();
      value += (b & 127) * scale;
      if (b < 128) return value;
      scale *= 128;
    }
    throw new Error("It is damaged.");
  }
  zigzag() { const n = this.varint(); return n % 2 ? -(n + 1) / 2 : n / 2; }
  text() { const size = this.varint(); const from = this.at; this.at += size; return new TextDecoder().decode(this.bytes.subarray(from, this.at)); }
  list() { const head = this.byte(); const size = head >> 4; return [size === 15 ? this.varint() : size, head & 15]; }
  value(kind, read) {
    if (kind === 1 || kind === 2) return kind === 1;
    if (kind === 3) return this.byte();
    if (kind >= 4 && kind <= 6) return this.zigzag();
    if (kind === 7) { this.at += 8; return null; }
    if (kind === 8) return this.text();
    if (kind === 9 || kind === 10) { const [size, inner] = this.list(); const all = []; for (let i = 0; i < size; i++) all.push(this.value(inner === 1 ? 3 : inner, read)); return all; }
    if (kind === 12) return this.struct();
    throw new Error("It is of a form that this page does not know.");
  }
  /** All fields of a struct by number; `until` stops after that field, so that nothing behind it is read. */
  struct(until = Infinity) {
    const fields = {};
    let number = 0;
    for (;;) {
      const head = this.byte();
      if (head === 0) return fields;
      number = head >> 4 ? number + (head >> 4) : this.zigzag();
      fields[number] = this.value(head & 15);
      if (number >= until) return fields;
    }
  }
}

function kindOf(element) {
  const physical = element[1], converted = element[6], logical = element[10] || {};
  if (logical[1] || logical[4] || converted === 0 || converted === 4) return "text";
  if (logical[6] || converted === 6) return "date";
  if (logical[8] || converted === 9 || converted === 10 || physical === 3) return "datetime";
  if (logical[5] || converted === 5) return "float";
  return { 0: "bool", 1: "int", 2: "int", 4: "float", 5: "float" }[physical] || null;
}

async function parquetColumns(file) {
  const end = new DataView(await file.slice(-8).arrayBuffer());
  const magic = [4, 5, 6, 7].map((i) => String.fromCharCode(end.getUint8(i))).join("");
  if (magic !== "PAR1") throw new Error("It is not a Parquet file.");
  const size = end.getUint32(0, true);
  const footer = new Uint8Array(await file.slice(file.size - 8 - size, file.size - 8).arrayBuffer());
  const elements = new Compact(footer).struct(2)[2] || [];
  const found = [];
  let skip = 0;
  for (const element of elements.slice(1)) {
    const children = element[5] || 0;
    if (skip > 0) { skip += children - 1; continue; }
    skip = children;
    found.push([element[4], children || element[3] === 2 ? null : kindOf(element)]);
  }
  return found;
}

function tell(text, wrong = false) {
  const said = node("file-said");
  said.textContent = text;
  said.classList.toggle("bad", wrong);
  said.hidden = false;
}

async function take(file) {
  const parquet = /\.parquet$/i.test(file.name);
  try {
    const columns = await (parquet ? parquetColumns(file) : csvColumns(file));
    const known = columns.filter(([name, kind]) => name && kind && !/[\n\r]/.test(name));
    node("columns").value = known.map(([name, kind]) => `${name} ${kind}`).join("\n");
    node("source").value = file.name;
    node("table").value = file.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9_]+/g, "_");
    const left = columns.length - known.length;
    tell(`${known.length} columns. ${left ? `${left} of a type that cannot be asked about are left out. ` : ""}${parquet ? "" : "A CSV file has no types: change them where a column is no text."}`);
  } catch (error) {
    tell(`This file cannot be read here. ${error.message} Write the columns below.`, true);
  }
}

/** Of a column only what its type needs. */
const NEEDED = { int: ["min", "max"], float: ["min", "max", "step"], date: ["min", "max"], datetime: ["min", "max"], category: ["values"] };
function fit(row) {
  const needed = NEEDED[row.querySelector("select").value] || [];
  for (const field of row.querySelectorAll("td input")) field.hidden = !needed.includes(field.name.split("-")[0]);
}
for (const row of document.querySelectorAll(".column-choices tbody tr")) {
  fit(row);
  row.querySelector("select").addEventListener("change", () => fit(row));
}

for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;
node("file")?.addEventListener("change", (event) => event.target.files[0] && take(event.target.files[0]));
node("save")?.addEventListener("click", (event) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([node("toml").textContent], { type: "application/toml" }));
  link.download = event.target.dataset.name;
  link.click();
  URL.revokeObjectURL(link.href);
});
