// What every page does: numbers and moments in the reader's locale, and short ways to call this server.
// Pages can be read without it.

const digitsOf = (text) => (text.split(".")[1] || "").replace(/\D/g, "").length;

/** A number in the reader's locale, with as many decimals as the page shows. */
export function localNumber(value, shown) {
  if (/e/i.test(shown)) return shown;
  const digits = Math.min(digitsOf(shown), 20);
  return new Intl.NumberFormat(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}

/** Everything below a node that the server wrote in English, in the reader's locale. */
export function localise(root = document) {
  for (const node of root.querySelectorAll("data[value]:not([data-done])")) {
    const value = Number(node.value);
    if (!Number.isFinite(value)) continue;
    node.dataset.done = "";
    if (node.dataset.style === "percent") {
      const digits = Number(node.dataset.digits || 1);
      const form = { style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits };
      node.textContent = new Intl.NumberFormat(undefined, form).format(value);
    } else {
      node.textContent = localNumber(value, node.textContent);
    }
  }
  for (const node of root.querySelectorAll("time[datetime]:not([data-done])")) {
    const when = new Date(node.dateTime);
    if (Number.isNaN(when.valueOf())) continue;
    node.dataset.done = "";
    node.title = node.textContent;
    node.textContent = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" }).format(when);
  }
}

/** Call this server as this page's session. A refusal is thrown as its problem (RFC 9457). */
export async function call(method, path, body, signal) {
  const headers = { Accept: "application/json" };
  const key = document.querySelector('meta[name="form-key"]');
  if (key) headers["X-Sordino-Form"] = key.content;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = { method, headers, signal, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) sent.body = JSON.stringify(body);
  const reply = await fetch(path, sent);
  const text = await reply.text();
  const found = text.trim() ? JSON.parse(text) : null;
  if (!reply.ok) throw Object.assign(new Error(found?.detail || reply.statusText), { problem: found, status: reply.status });
  return found;
}

/** What the workbench of a dataset finds out about a question: {found} or {problem}. */
export async function study(dataset, fields, signal) {
  const key = document.querySelector('meta[name="form-key"]').content;
  const body = new URLSearchParams({ ...fields, form_key: key });
  const reply = await fetch(`/workbench/${encodeURIComponent(dataset)}/study`, { method: "POST", body, signal, cache: "no-store" });
  const told = await reply.json();
  if (reply.status === 401) throw Object.assign(new Error("logged out"), { problem: { rule: "you are logged out", hint: "Log in again in another window: what you wrote stays here." } });
  if (told.found !== undefined) return told.found;
  throw Object.assign(new Error("refused"), { problem: told.problem || told });
}

/** An element: make("p", {class: "soft"}, "text", child). Values are text or attributes, never markup. */
export function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** The values that the server wrote into the page as JSON. */
export function given(id) {
  const node = document.getElementById(id);
  return node ? JSON.parse(node.textContent) : null;
}

localise();
