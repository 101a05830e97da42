"""The few pages of the web process: plain HTML without scripts, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import parse_qsl

from sordino.server.link import JSON

__all__ = ["form_fields", "home", "login"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title></head><body><main><h1>{title}</h1>
{body}
</main></body></html>
"""


def form_fields(body: bytes) -> dict[str, str]:
    """The fields of a form; of several with one name the last."""
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20))


def login(*, provider: bool, wrong: str = "") -> str:
    """The form to log in."""
    said = f'<p role="alert">{escape(wrong)}</p>' if wrong else ""
    other = '<p><a href="/v1/oidc/login">Log in with your organisation</a></p>' if provider else ""
    form = (
        '<form method="post" action="/login"><p><label>Name <input name="name" autocomplete="username" required></label></p>'
        '<p><label>Password <input name="password" type="password" autocomplete="current-password" required></label></p>'
        "<p><button>Log in</button></p></form>"
    )
    return _PAGE.format(title="Log in to Sordino", body=f"{said}{form}{other}")


def home(
    name: str, roles: Sequence[str], datasets: Sequence[tuple[Mapping[str, JSON], Mapping[str, JSON] | None]]
) -> str:  # fmt: skip
    """Who one is, and the datasets with what is left of their budgets."""
    rows = "".join(_row(dataset, budget) for dataset, budget in datasets)
    table = f"<table><tr><th>Dataset</th><th>State</th><th>Left</th><th></th></tr>{rows}</table>" if rows else ""
    out = '<form method="post" action="/logout"><button>Log out</button></form>'
    who = f"<p>{escape(name)} ({escape(', '.join(roles))})</p>"
    return _PAGE.format(title="Sordino", body=f"{who}{table or '<p>No dataset is open to you.</p>'}{out}")


def _row(dataset: Mapping[str, JSON], budget: Mapping[str, JSON] | None) -> str:
    whole = (budget or {}).get("whole")
    share = (whole if isinstance(whole, Mapping) else budget or {}).get("left_share")
    left = f"{100 * share:.1f} %" if isinstance(share, float) else ""
    remark = escape(str(dataset.get("remark", "")))
    name, state = escape(str(dataset["name"])), escape(str(dataset["state"]))
    return f"<tr><td>{name}</td><td>{state}</td><td>{left}</td><td>{remark}</td></tr>"
