"""All pages in one table: what each shows, with which template, and its name in the menu. Who may see which, and where,
is in the table of rights (`accounts/rights.py`) under the same name; the app does not start if the two differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from sordino.server.web.site import (
    agents,
    answers,
    audit,
    board,
    datasets,
    declare,
    history,
    login,
    owner,
    theory,
    tokens,
    workbench,
)
from sordino.server.web.site.visit import Page

__all__ = ["PAGES"]

PAGES: Mapping[str, Page] = {
    "login_page": Page(login.show, "login.html"),
    "login_form": Page(login.enter, "login.html"),
    "link_page": Page(login.by_link),
    "logout_form": Page(login.leave),
    "home_page": Page(datasets.show, "datasets.html", "Datasets"),
    "workbench_start": Page(workbench.start, menu="Workbench"),
    "workbench_page": Page(workbench.show, "workbench.html"),
    "ask_form": Page(workbench.ask, "workbench.html"),
    "workbench_study": Page(workbench.study),
    "answer_page": Page(answers.show, "answer.html"),
    "answer_file": Page(answers.file),
    "again_form": Page(answers.again, "answer.html"),
    "pin_form": Page(answers.pin),
    "history_page": Page(history.show, "history.html", "History"),
    "board_page": Page(board.show, "board.html", "Board"),
    "owner_page": Page(owner.show, "owner.html", "Owner"),
    "owner_dataset": Page(owner.dataset, "owner_dataset.html"),
    "owner_allot": Page(owner.allot),
    "owner_take_back": Page(owner.take_back),
    "owner_rules": Page(owner.set_rules),
    "owner_decide": Page(owner.decide),
    "owner_suspend": Page(owner.suspend),
    "owner_person": Page(owner.add_person),
    "owner_close_person": Page(owner.close_person),
    "declare_page": Page(declare.show, "declare.html"),
    "declare_form": Page(declare.fill_in, "declare.html"),
    "audit_page": Page(audit.show, "audit.html", "Audit"),
    "audit_dataset": Page(audit.charges, "audit_dataset.html"),
    "audit_check": Page(audit.check, "audit_dataset.html"),
    "audit_checkpoint": Page(audit.checkpoint),
    "agents_page": Page(agents.show, "agents.html", "Agents"),
    "agents_connect": Page(agents.connect, "agents.html"),
    "tokens_page": Page(tokens.show, "tokens.html", "Tokens"),
    "tokens_make": Page(tokens.make, "tokens.html"),
    "tokens_revoke": Page(tokens.revoke),
    "tokens_password": Page(tokens.set_password),
    "theory_page": Page(theory.show, "theory.html", "Theory"),
    "theory_lesson": Page(theory.numbers),
}
