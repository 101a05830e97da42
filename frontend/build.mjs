// Builds the editor into one module, with the licences of what is in it and a SHA-256. The same input gives the same bytes.
//   npm ci && node build.mjs [FOLDER]
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../src/sordino/server/web/site/static");
const made = await build({
  absWorkingDir: here, entryPoints: ["editor.js"], bundle: true, minify: true, format: "esm", target: "es2022",
  charset: "utf8", legalComments: "none", metafile: true, write: false,
});

const packages = new Set();
for (const path of Object.keys(made.metafile.inputs)) {
  const found = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const parts = [];
for (const name of [...packages].sort()) {
  const folder = join(here, "node_modules", name);
  const facts = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = ["LICENSE", "LICENSE.md", "license"].map((each) => join(folder, each)).find(existsSync);
  if (!file) throw new Error(`${name} has no licence file`);
  parts.push(`${name} ${facts.version} (${facts.license})\n\n${readFileSync(file, "utf8").trim()}\n`);
}

const note = "/* CodeMirror and Lezer, MIT licence: see editor.LICENSES.txt. Built by frontend/build.mjs. */\n";
const bytes = Buffer.from(note + made.outputFiles[0].text);
writeFileSync(join(out, "editor.js"), bytes);
writeFileSync(join(out, "editor.LICENSES.txt"), parts.join(`\n${"-".repeat(80)}\n\n`));
writeFileSync(join(out, "editor.js.sha256"), `${createHash("sha256").update(bytes).digest("hex")}  editor.js\n`);
