// Charts of answers: bars, lines over time, histograms and heat maps, all with error bars. SVG, no markup from text.

const NS = "http://www.w3.org/2000/svg";
const MOST = 60;
const form = (options) => new Intl.NumberFormat(undefined, options);

function node(name, attributes = {}, ...children) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Round steps through a range: about as many as asked. */
export function ticks(low, high, about = 5) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / about;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * unit).find((each) => each >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

const short = (value) => form({ notation: Math.abs(value) >= 1e5 ? "compact" : "standard", maximumSignificantDigits: 4 }).format(value);

/** A number with as many digits as its error leaves. */
export function shown(value, half, integer) {
  if (value === null) return "–";
  if (integer) return form({ maximumFractionDigits: 0 }).format(value);
  const digits = half > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(half)), 0), 12) : 4;
  return form({ minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}

const half = (column, i) => column.low[i] === null || column.high[i] === null || column.value[i] === null ? null
  : Math.max(column.high[i] - column.value[i], column.value[i] - column.low[i]);

function extent(column, count, from = [0]) {
  const all = [...from];
  for (let i = 0; i < count; i++) for (const part of [column.value, column.low, column.high]) if (part[i] !== null) all.push(part[i]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return low === high ? [low, low + 1] : [low, high];
}

const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low)) * (to - from);
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function whisker(x1, y1, x2, y2, cap, upright) {
  const ends = upright ? `M${x1 - cap} ${y1}h${2 * cap}M${x1 - cap} ${y2}h${2 * cap}` : `M${x1} ${y1 - cap}v${2 * cap}M${x2} ${y1 - cap}v${2 * cap}`;
  return node("path", { class: "whisker", d: `M${x1} ${y1}L${x2} ${y2}${ends}` });
}

function label(column, i) {
  const h = half(column, i);
  const value = shown(column.value[i], h, column.integer);
  return h ? `${value} ± ${shown(h, h, column.integer)}` : value;
}

function bars(width, key, column, count) {
  const room = Math.min(Math.max(...key.values.slice(0, count).map((text) => String(text).length)) * 7.2 + 12, width * 0.34);
  const [low, high] = extent(column, count);
  const line = 28;
  const height = count * line + 26;
  const x = scale(low, high, room, width - 14);
  const made = node("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot" });
  for (const at of ticks(low, high, Math.max(width / 130, 2))) {
    made.append(node("path", { class: at === 0 ? "zero" : "rule", d: `M${x(at)} 0V${height - 20}` }));
    made.append(node("text", { class: "tick", x: x(at), y: height - 5, "text-anchor": "middle" }, short(at)));
  }
  for (let i = 0; i < count; i++) {
    const y = i * line + line / 2;
    made.append(node("text", { class: "name", x: room - 8, y: y + 4, "text-anchor": "end" }, cut(String(key.values[i] ?? "NULL"), Math.floor(room / 7))));
    if (column.value[i] === null) continue;
    const [from, to] = [x(Math.min(0, column.value[i])), x(Math.max(0, column.value[i]))];
    made.append(node("rect", { class: "mark", x: from, y: y - 8, width: Math.max(to - from, 0.5), height: 16, rx: 2 }, node("title", {}, `${key.values[i]}: ${label(column, i)}`)));
    if (half(column, i)) made.append(whisker(x(column.low[i]), y, x(column.high[i]), y, 4, false));
  }
  return made;
}

function frame(width, height, low, high, left) {
  const y = scale(low, high, height - 26, 8);
  const made = node("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot" });
  for (const at of ticks(low, high, 4)) {
    made.append(node("path", { class: at === 0 ? "zero" : "rule", d: `M${left} ${y(at)}H${width - 8}` }));
    made.append(node("text", { class: "tick", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, short(at)));
  }
  return [made, y];
}

function upright(width, key, column, count, kind) {
  const order = [...Array(count).keys()].filter((i) => key.values[i] !== null && column.value[i] !== null);
  const time = kind === "time";
  const place = (i) => (time ? Date.parse(key.values[i]) : key.values[i]);
  order.sort((a, b) => place(a) - place(b));
  const tight = extent(column, count, []);
  const far = time && tight[0] > 0.5 * tight[1];  // a line far above zero is drawn without it
  const [low, high] = far ? [tight[0] - 0.1 * (tight[1] - tight[0]), tight[1]] : extent(column, count);
  const [height, left] = [Math.min(Math.max(width * 0.42, 180), 320), 52];
  const [made, y] = frame(width, height, low, high, left);
  if (!order.length) return made;
  const gaps = order.slice(1).map((i, at) => place(i) - place(order[at]));
  const gap = gaps.length ? Math.min(...gaps.filter((each) => each > 0)) : 1;
  const first = place(order[0]);
  const last = place(order[order.length - 1]) + (time ? 0 : gap);
  const x = scale(first, last === first ? first + 1 : last, left + 6, width - 16);
  if (time) {
    const band = order.filter((i) => half(column, i));
    if (band.length > 1) {
      const ahead = band.map((i) => `${x(place(i))} ${y(column.high[i])}`).join("L");
      const back = [...band].reverse().map((i) => `${x(place(i))} ${y(column.low[i])}`).join("L");
      made.append(node("path", { class: "band", d: `M${ahead}L${back}Z` }));
    }
    made.append(node("path", { class: "line", d: `M${order.map((i) => `${x(place(i))} ${y(column.value[i])}`).join("L")}` }));
  }
  for (const i of order) {
    const told = node("title", {}, `${key.values[i]}: ${label(column, i)}`);
    const middle = time ? x(place(i)) : (x(place(i)) + x(place(i) + gap)) / 2;
    if (time) made.append(node("circle", { class: "dot", cx: middle, cy: y(column.value[i]), r: 3 }, told));
    else {
      const [top, bottom] = [y(Math.max(0, column.value[i])), y(Math.min(0, column.value[i]))];
      const wide = Math.max(x(place(i) + gap) - x(place(i)) - 1, 1);
      made.append(node("rect", { class: "mark", x: x(place(i)) + 0.5, y: top, width: wide, height: Math.max(bottom - top, 0.5) }, told));
    }
    if (half(column, i)) made.append(whisker(middle, y(column.high[i]), middle, y(column.low[i]), Math.min(4, Math.max(x(place(i) + gap) - x(place(i)), 2) / 3), true));
  }
  const stride = Math.ceil(order.length / Math.max(Math.floor(width / 90), 2));
  const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", ...(gap < 27 * 864e5 ? { day: "numeric" } : {}) });
  order.forEach((i, at) => {
    if (at % stride) return;
    const text = time ? day.format(new Date(place(i))) : short(place(i));
    made.append(node("text", { class: "tick", x: x(place(i)), y: height - 8, "text-anchor": at === 0 && time ? "start" : "middle" }, text));
  });
  return made;
}

function heat(width, [rows, columns], column, total) {
  const names = (key) => [...new Set(key.values.map((value) => (value === null ? "NULL" : String(value))))];
  const sorted = (key) => (key.form === "text" ? names(key) : names(key).sort((a, b) => (key.form === "number" ? a - b : a < b ? -1 : 1)));
  const [down, across] = [sorted(rows).slice(0, MOST), sorted(columns).slice(0, MOST)];
  const room = Math.min(Math.max(...down.map((text) => text.length)) * 7.2 + 12, width * 0.3);
  const cell = (width - room - 4) / across.length;
  const line = Math.min(Math.max(cell * 0.5, 26), 44);
  const known = column.value.filter((value) => value !== null);
  const [low, high] = [Math.min(0, ...known), Math.max(0, ...known)];
  const height = down.length * line + 28;
  const made = node("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot" });
  for (let i = 0; i < total; i++) {
    const [r, c] = [down.indexOf(String(rows.values[i] ?? "NULL")), across.indexOf(String(columns.values[i] ?? "NULL"))];
    if (r < 0 || c < 0 || column.value[i] === null) continue;
    const strength = high > low ? (column.value[i] - low) / (high - low) : 0;
    const h = half(column, i);
    const unsure = h !== null && column.low[i] <= 0 && column.high[i] >= 0;
    const box = { x: room + c * cell + 1, y: r * line + 1, width: Math.max(cell - 2, 1), height: line - 2, rx: 3 };
    made.append(node("rect", { class: unsure ? "heat unsure" : "heat", ...box, "fill-opacity": (0.05 + 0.45 * Math.max(strength, 0)).toFixed(3) }, node("title", {}, `${rows.values[i]}, ${columns.values[i]}: ${label(column, i)}`)));
    if (cell > 46) {
      const value = node("text", { class: "cell", x: box.x + box.width / 2, y: box.y + line / 2 + 3, "text-anchor": "middle" }, short(column.value[i]));
      made.append(value);
      if (h && cell > 96) value.append(node("tspan", { class: "pm", dx: 4 }, `±${short(h)}`));
    }
  }
  down.forEach((text, i) => made.append(node("text", { class: "name", x: room - 8, y: i * line + line / 2 + 4, "text-anchor": "end" }, cut(text, Math.floor(room / 7)))));
  const stride = Math.ceil(across.length / Math.max(Math.floor((width - room) / 56), 1));
  across.forEach((text, i) => i % stride || made.append(node("text", { class: "tick", x: room + (i + 0.5) * cell, y: height - 8, "text-anchor": "middle" }, cut(text, Math.max(Math.floor((cell * stride) / 7), 3)))));
  return made;
}

function single(width, column) {
  const h = half(column, 0);
  const [value, reach] = [column.value[0], h || Math.abs(column.value[0]) * 0.1 || 1];
  const x = scale(value - 2.2 * reach, value + 2.2 * reach, 24, width - 24);
  const made = node("svg", { viewBox: `0 0 ${width} 74`, class: "plot" });
  for (const at of ticks(value - 2.2 * reach, value + 2.2 * reach, Math.max(width / 140, 2))) {
    made.append(node("path", { class: "rule", d: `M${x(at)} 8V52` }));
    made.append(node("text", { class: "tick", x: x(at), y: 68, "text-anchor": "middle" }, short(at)));
  }
  if (h) made.append(node("rect", { class: "band", x: x(column.low[0]), y: 18, width: x(column.high[0]) - x(column.low[0]), height: 24, rx: 4 }), whisker(x(column.low[0]), 30, x(column.high[0]), 30, 7, false));
  made.append(node("circle", { class: "dot", cx: x(value), cy: 30, r: 5 }));
  return made;
}

/** Draw an answer into a figure, again whenever its width changes; false if there is nothing to draw. */
export function draw(figure, answer) {
  const keys = answer.columns.filter((column) => column.type === "key");
  const numbers = answer.columns.filter((column) => column.type === "estimate").slice(0, 3);
  const total = numbers.length ? numbers[0].value.length : 0;
  const drawable = total > 0 && keys.length <= 2 && (keys.length > 0 || (total === 1 && numbers[0].value[0] !== null));
  figure.hidden = !drawable;
  if (!drawable) return false;
  const paint = () => {
    const width = Math.max(figure.clientWidth, 260);
    figure.replaceChildren();
    for (const column of numbers) {
      const count = Math.min(total, MOST);
      let made;
      if (!keys.length) made = column.value[0] === null ? null : single(width, column);
      else if (keys.length === 2) made = heat(width, keys, column, total);
      else if (keys[0].form === "time" || (keys[0].form === "number" && total > 2)) made = upright(width, keys[0], column, total, keys[0].form);
      else made = bars(width, keys[0], column, count);
      if (!made) continue;
      made.setAttribute("role", "img");
      made.setAttribute("aria-label", `Chart of ${column.name}; the table has the same numbers`);
      if (numbers.length > 1) {
        const title = document.createElement("figcaption");
        title.textContent = column.name;
        figure.append(title);
      }
      figure.append(made);
    }
    if (keys.length === 1 && keys[0].form === "text" && total > MOST) {
      const title = document.createElement("figcaption");
      title.textContent = `The first ${MOST} of ${total} groups`;
      figure.append(title);
    }
  };
  figure.paint = paint;
  if (!figure.watched) {
    figure.watched = new ResizeObserver(() => {
      const wide = figure.clientWidth;
      if (wide && wide !== figure.painted) { figure.painted = wide; figure.paint(); }
    });
    figure.watched.observe(figure);
  }
  paint();
  figure.painted = figure.clientWidth;
  return true;
}

/** Error against price, both on logarithmic axes; returns a function that moves the mark to a price. */
export function drawCurve(figure, points, name, percentOf) {
  figure.replaceChildren();
  const known = points.filter((point) => point.error > 0 && point.takes > 0);
  if (known.length < 2) return () => {};
  const width = Math.max(figure.clientWidth, 260);
  const [height, left] = [150, 56];
  const logs = (pick) => known.map((point) => Math.log10(pick(point)));
  const [xs, ys] = [logs((point) => point.takes), logs((point) => point.error)];
  const x = scale(Math.min(...xs), Math.max(...xs), left, width - 16);
  const y = scale(Math.min(...ys), Math.max(...ys), height - 34, 10);
  const made = node("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": `Error of ${name} against the part of the budget` });
  const decades = (all) => { const found = []; for (let p = Math.ceil(Math.min(...all) - 1e-9); p <= Math.max(...all) + 1e-9; p++) found.push(p); return found; };
  for (const p of decades(ys)) {
    made.append(node("path", { class: "rule", d: `M${left} ${y(p)}H${width - 16}` }));
    made.append(node("text", { class: "tick", x: left - 6, y: y(p) + 4, "text-anchor": "end" }, `±${short(10 ** p)}`));
  }
  for (const p of decades(xs)) {
    made.append(node("path", { class: "rule", d: `M${x(p)} 10V${height - 34}` }));
    made.append(node("text", { class: "tick", x: x(p), y: height - 18, "text-anchor": "middle" }, percentOf(10 ** p)));
  }
  made.append(node("text", { class: "tick", x: (left + width) / 2, y: height - 3, "text-anchor": "middle" }, "of my budget"));
  made.append(node("path", { class: "line", d: `M${known.map((point, i) => `${x(xs[i])} ${y(ys[i])}`).join("L")}` }));
  const mark = node("circle", { class: "dot", r: 6, cx: -99, cy: -99 });
  made.append(mark);
  figure.append(made);
  return (takes, error) => {
    mark.setAttribute("cx", takes > 0 ? x(Math.log10(takes)) : -99);
    mark.setAttribute("cy", error > 0 ? y(Math.log10(error)) : -99);
  };
}
