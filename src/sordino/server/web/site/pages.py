"""All pages in one table: what each shows, with which template, and its name in the menu. Who may see which, and where,
is in the table of rights (`accounts/rights.py`) under the same name; the app does not start if the two differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from sordino.server.web.site import datasets, login, theory
from sordino.server.web.site.visit import Page

__all__ = ["PAGES"]

PAGES: Mapping[str, Page] = {
    "login_page": Page(login.show, "login.html"),
    "login_form": Page(login.enter, "login.html"),
    "link_page": Page(login.by_link),
    "logout_form": Page(login.leave),
    "home_page": Page(datasets.show, "datasets.html", "Datasets"),
    "theory_page": Page(theory.show, "theory.html", "Theory"),
    "theory_lesson": Page(theory.numbers),
}
