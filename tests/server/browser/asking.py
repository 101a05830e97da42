"""Short ways to ask the server as a program does, while a browser looks at its pages."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Page

from server.browser.site import Site

__all__ = ["asked", "posted", "sent"]


def sent(site: Site, who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """The status and the JSON of one request with somebody's token."""
    connection = http.client.HTTPConnection(urlsplit(site.address).netloc, timeout=30)
    headers = {"Authorization": f"Bearer {site.tokens[who]}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, json.loads(text) if text.strip() else None


def asked(site: Site, who: str, dataset: str, sql: str, epsilon: str, **more: Any) -> Any:
    """What became of a question."""
    body = {"question": sql, "offer": {"epsilon": epsilon}, **more}
    status, found = sent(site, who, "POST", f"/v1/datasets/{dataset}/questions", body)
    assert status == 202, found
    return (
        sent(site, who, "GET", f"{found['location']}?wait=20")[1]
        if found["status"] == "accepted"
        else found
    )


def posted(site: Site, page: Page, path: str, fields: dict[str, str], **headers: str) -> int:
    """The status of a form that is sent with the session of a page, and whatever else."""
    cookie = "; ".join(f"{one['name']}={one['value']}" for one in page.context.cookies())
    connection = http.client.HTTPConnection(urlsplit(site.address).netloc, timeout=30)
    told = {
        "Cookie": cookie,
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "text/html",
        **headers,
    }
    connection.request("POST", path, urlencode(fields), told)
    status = connection.getresponse().status
    connection.close()
    return status
