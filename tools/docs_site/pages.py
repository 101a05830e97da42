"""What the site shows beside `docs/` (MkDocs calls these hooks): front page, proofs, source, notebooks, reference."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from tools.docs_site.links import ROOT, in_site, rewritten, targets
from tools.docs_site.notebook import as_markdown

import sordino
from sordino import learn, local

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "benchmarks/RESULTS.md",
    "benchmarks/README.md",
)
ROOMS = {
    "session": "Sessions",
    "query": "Datasets and questions",
    "answer": "Answers",
    "plan": "Plans",
    "ledger": "Ledgers",
    "mechanisms": "Mechanisms",
    "privacy": "Budgets, losses, sensitivity",
    "accounting": "Accounting",
    "adaptive": "Adaptive analysis",
    "learn": "Learning",
    "local": "Local protocols",
    "client": "Served datasets",
}
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".json": "json"}


def _proofs() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src" / "sordino").rglob("*.md"))


def _title(path: str) -> str:
    return next(
        line for line in (ROOT / path).read_text("utf-8").split("\n") if line.startswith("# ")
    )[2:]


def _reference() -> dict[str, str]:
    """A page for each room: all its public names, with their docstrings."""
    homes = defaultdict[str, list[tuple[str, str]]](list)
    for name, home in sordino._HOME.items():
        module, _, real = home.partition(":")
        homes[module.split(".")[0]].append((f"so.{name}", f"sordino.{module}.{real or name}"))
    homes["learn"] += [
        (f"so.learn.{name}", f"sordino.learn.{home}.{name}") for name, home in learn._HOME.items()
    ]
    homes["local"] += [
        (f"so.local.{name}", getattr(local, name).__module__ + f".{name}") for name in local.__all__
    ]
    assert set(homes) == set(ROOMS), set(homes) ^ set(ROOMS)
    pages = {}
    for room, title in ROOMS.items():
        entries = [
            f"::: {path}\n    options:\n      heading: {shown}\n      toc_label: {shown}\n      inherited_members: true\n"
            for shown, path in sorted(homes[room])
        ]
        pages[f"reference/{room}.md"] = "\n".join(
            [f"# {title}\n", "`import sordino as so`\n", *entries]
        )
    pages["reference/audit.md"] = (
        "# Audits\n\n`so.audit(function, ...)` is `black_box`; the other checks are `so.audit.exact`, `.law`, `.replay`, "
        "`.training` and `.zoo`.\n\n"
        + "\n".join(
            f"::: sordino.audit.{path}\n    options:\n      heading: so.audit.{name}\n      toc_label: so.audit.{name}\n"
            for name, path in _audits()
        )
    )
    pages["reference/divergence.md"] = (
        "# Distances of finite laws\n\n::: sordino.privacy.divergence\n    options:\n      heading: so.divergence\n"
    )
    pages["reference/errors.md"] = (
        "# Errors\n\n::: sordino.errors\n    options:\n      heading: so.errors\n"
    )
    return pages


def _audits() -> list[tuple[str, str]]:
    found = {
        name: getattr(sordino.audit, name) for name in ("exact", "law", "replay", "training", "zoo")
    }
    return [("__call__", "sampled.black_box.black_box")] + [
        (name, f"{function.__module__.removeprefix('sordino.audit.')}.{function.__name__}")
        for name, function in found.items()
    ]


def _named(entry: Any) -> set[str]:
    """The pages that a part of the navigation names."""
    if isinstance(entry, str):
        return {entry}
    return set[str]().union(*map(_named, entry.values() if isinstance(entry, dict) else entry))


def _nav(entry: Any, named: set[str]) -> Any:
    """The navigation with its four placeholders filled in; pages of `docs/` that it forgot are OTHERS."""
    if isinstance(entry, list):
        filled = (_nav(each, named) for each in entry)
        return [each for made in filled for each in (made if isinstance(made, list) else [made])]
    if isinstance(entry, dict):
        return {title: _nav(below, named) for title, below in entry.items()}
    if entry == "OTHERS":
        return [
            name
            for path in sorted((ROOT / "docs").glob("*.md"))
            if (name := path.name) not in named
        ]
    if entry == "REFERENCE":
        return [f"reference/{room}.md" for room in (*ROOMS, "audit", "divergence", "errors")]
    if entry == "PROOFS":
        rooms = defaultdict[str, list[Any]](list)
        for path in _proofs():
            rooms[path.split("/")[2].capitalize()].append({_title(path): in_site(path)})
        return [{room: pages} for room, pages in rooms.items()]
    if entry == "DECISIONS":
        return [
            {_title(str(p.relative_to(ROOT))): f"decisions/{p.name}"}
            for p in sorted((ROOT / "docs/decisions").glob("0*.md"))
        ]
    return entry


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The parts of the navigation that follow from the repository."""
    config.nav = _nav(config.nav, _named(config.nav))
    version = sordino.__version__
    config.copyright = f"Sordino {version}, Apache-2.0"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of files outside `docs/`."""
    made = dict[str, str]()
    texts = {path: (ROOT / path).read_text("utf-8") for path in (*PAGES, *_proofs())}
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        path = str(notebook.relative_to(ROOT))
        texts[path] = as_markdown(notebook)
    texts |= {path: _laid_out(texts[path], path) for path in _proofs()}
    for path, text in texts.items():
        made[in_site(path)] = rewritten(text, path, in_site(path))
    documents = {
        str(p.relative_to(ROOT)): p.read_text("utf-8") for p in (ROOT / "docs").rglob("*.md")
    }
    wanted = set[str]().union(*(targets(text, path) for path, text in (texts | documents).items()))
    for path in sorted(wanted):
        if in_site(path).startswith("source/"):
            made[in_site(path)] = _source(path)
    for image in (ROOT / "benchmarks" / "results").glob("*.png"):
        uri = str(image.relative_to(ROOT))
        files.append(File.generated(config, uri, abs_src_path=str(image)))
    for uri, text in (made | _reference()).items():
        files.append(File.generated(config, uri, content=text))
    return files


def _laid_out(text: str, path: str) -> str:
    """A proof as a page: proofs and what follows them are paragraphs, and names of other proofs are links."""
    text = re.sub(r"\n(?=\*Proof)", "\n\n", text)
    text = re.sub(r"∎\n(?=\S)", "∎\n\n", text)
    beside = {p.name for p in (ROOT / path).parent.glob("*.md")} - {Path(path).name}
    return re.sub(
        r"(?<![\w/`\[(.-])([a-z_]+\.md)(?![\w`\])])",
        lambda m: f"[{m[1]}]({m[1]})" if m[1] in beside else m[1],
        text,
    )


def _source(path: str) -> str:
    text = (ROOT / path).read_text("utf-8")
    fence = "`" * (max([2, *(len(run) for run in re.findall(r"`+", text))]) + 1)
    language = LANGUAGES.get(Path(path).suffix, "text")
    head = "---\nsearch:\n  exclude: true\nhide: [toc]\n---"
    return f'{head}\n# {path}\n\n{fence} {{.{language} linenums="1"}}\n{text}\n{fence}\n'


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Pages of `docs/` link to files of the repository; here, to the pages that show them."""
    if page.file.generated_by is not None:
        return markdown
    path = f"docs/{page.file.src_uri}"
    return rewritten(markdown, path, page.file.src_uri)
