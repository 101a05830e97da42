// Pages with answers: charts, and what can be copied.
import { draw } from "./chart.js";
import { given, study } from "./page.js";

for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure, given(figure.dataset.chart));

const said = document.getElementById("copied");
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const what = button.dataset.copy;
    let text = location.href;
    if (what === "csv") text = await (await fetch(`${location.pathname}/csv`, { credentials: "same-origin" })).text();
    else if (what !== "link") text = document.querySelector(what).textContent;
    await navigator.clipboard.writeText(text);
    said.textContent = "Copied.";
  });
}

// What another answer at this price would do: the errors of both, combined.
const again = document.getElementById("again");
if (again) {
  const [field, told] = [again.elements.epsilon, document.getElementById("again-said")];
  const columns = (given("answer-chart")?.columns || []).filter((column) => column.type === "estimate");
  let timer;
  const look = async () => {
    const question = document.getElementById("question-sql").textContent;
    try {
      const found = await study(again.dataset.dataset, { what: "preview", sql: question, epsilon: field.value.trim() });
      const column = columns.find((one) => found.errors[one.name]);
      const share = new Intl.NumberFormat(undefined, { style: "percent", maximumSignificantDigits: 2 }).format(found.takes);
      let text = `takes ${share} of your budget`;
      if (column) {
        const old = Math.max(...column.value.map((value, i) => Math.max(column.high[i] - value, value - column.low[i])));
        const both = 1 / Math.sqrt(1 / old ** 2 + 1 / found.errors[column.name] ** 2);
        const number = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
        text = `${column.name} ± ${number.format(both)} instead of ± ${number.format(old)}; ${text}`;
      }
      told.textContent = found.fits === 0 ? "It does not fit into what is left." : `${text}.`;
    } catch (error) {
      told.textContent = error.problem ? `${error.problem.rule}. ${error.problem.hint || ""}` : "";
    }
  };
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, 250); });
  look();
}
