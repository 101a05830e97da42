// The sliders of the theory page. The server computes every number and every line; this moves them.
// At most one question is under way for each lesson; while it is, only the newest place of the sliders is kept.

import { call } from "./page.js";

const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const share = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const kept = new Map();

function said(value) {
  if (value === null) return "none";
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6)) return String(Number(value.toPrecision(3)));
  return short.format(value);
}

function places(form) {
  const query = new URLSearchParams({ lesson: form.dataset.lesson });
  for (const [name, value] of new FormData(form)) query.set(name.slice(form.dataset.lesson.length + 1), value);
  return query.toString();
}

function write(node, value) {
  if (node.localName === "data") node.value = value ?? "";
  node.textContent = node.dataset.style === "percent" ? share.format(value) : said(value);
}

function redraw(lesson, drawing) {
  for (const [name, path] of Object.entries(drawing.paths)) {
    document.getElementById(`${lesson}-${name}`)?.setAttribute("d", path);
  }
  for (const [name, value] of Object.entries(drawing.numbers)) {
    const node = document.getElementById(`${lesson}-${name}-number`);
    if (node) write(node, value);
  }
  for (const [name, text] of Object.entries(drawing.texts)) {
    const node = document.getElementById(`${lesson}-${name}`);
    if (node) node.textContent = text;
  }
}

let soon;
/** The address says where all sliders are, so that it can be passed on; not while they are dragged. */
function remember(lesson) {
  clearTimeout(soon);
  soon = setTimeout(() => address(lesson), 250);
}

function address(lesson) {
  const query = new URLSearchParams();
  for (const form of document.querySelectorAll("form[data-lesson]")) {
    for (const [name, value] of new FormData(form)) query.set(name, value);
  }
  history.replaceState(null, "", `?${query}#${lesson}`);
}

class Lesson {
  constructor(form) {
    this.form = form;
    this.name = form.dataset.lesson;
    this.fresh = form.dataset.fresh === "yes";
    this.busy = false;
    this.waits = false;
    form.addEventListener("input", (event) => {
      this.label(event.target);
      this.move();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.move();
    });
    for (const slider of form.querySelectorAll("input[type=range]")) this.label(slider);
  }

  label(slider) {
    if (slider.type !== "range" || "computed" in slider.dataset) return;
    const text = JSON.parse(slider.dataset.shown)[slider.valueAsNumber];
    const node = slider.closest("label").querySelector(".value");
    node.textContent = /^[\d.,]+$/.test(text) ? said(Number(text.replaceAll(",", ""))) : text;
    slider.setAttribute("aria-valuetext", node.textContent);
  }

  async move() {
    this.waits = true;
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.waits) {
        this.waits = false;
        const query = places(this.form);
        const drawing = (!this.fresh && kept.get(query)) || (await call("GET", `/theory/lesson?${query}`));
        if (!this.fresh) kept.set(query, drawing);
        redraw(this.name, drawing);
      }
      remember(this.name);
    } catch (error) {
      document.getElementById(`${this.name}-said`).textContent = error.problem?.detail || "The server does not answer.";
    } finally {
      this.busy = false;
    }
  }
}

document.body.classList.add("live");
for (const node of document.querySelectorAll('.lesson data[id$="-number"]')) write(node, node.value === "" ? null : Number(node.value));
for (const form of document.querySelectorAll("form[data-lesson]")) new Lesson(form);
