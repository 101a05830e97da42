"""The auditor's pages: who asked what at which price, the signed state of the log,
and checks of what people kept of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from sordino.errors import InvalidInput
from sordino.ledger.public_log import Checkpoint, Proof, VerifyingKey, findings, fork_findings
from sordino.privacy.wording import counted
from sordino.server.web.site.visit import Values, Visit

__all__ = ["charges", "check", "checkpoint", "show"]

_SHOWN = 50


async def show(visit: Visit) -> Values:
    """The datasets whose ledgers one may read."""
    found: list[Mapping[str, Any]] = []
    for each in visit.desk.datasets(visit.who):
        if isinstance(each, Mapping):
            ready = each.get("state") != "starting"
            found.append(
                {
                    **each,
                    "whole": visit.desk.account(visit.who, str(each["name"]))["whole"]
                    if ready
                    else None,
                }
            )
    return {"datasets": found}


async def charges(visit: Visit) -> Values:
    """One ledger: the newest charges, and the checkpoint of its log."""
    return await _ledger(visit)


async def check(visit: Visit) -> Values:
    """Check an older checkpoint, or a receipt, against the log as it is now."""
    text = visit.field("text").replace("\r\n", "\n").strip() + "\n"
    link = visit.desk.link(visit.who, visit.part("dataset"))
    if text.lstrip().startswith("{"):
        proof = Proof.from_json(text)
        key, now, path = await _signed(link, proof.checkpoint.size)
        wrong = [*findings(proof, key), *fork_findings(now, path, proof.checkpoint, key)]
        told = f"The receipt holds: entry {proof.charge['sequence']} is in this log, and the log continues it."
    else:
        older = Checkpoint.of(text)
        key, now, path = await _signed(link, older.size)
        wrong = list(fork_findings(now, path, older, key))
        entries = counted(now.size, "entry", "entries")
        told = f"The log of {entries} continues the checkpoint of {older.size}: nothing before it was changed."
    return await _ledger(visit, {"wrong": list(dict.fromkeys(wrong)), "told": told, "text": text})


async def checkpoint(visit: Visit) -> Response:
    """The checkpoint as a file to keep."""
    name = visit.part("dataset")
    log = await visit.desk.link(visit.who, name).checkpoint(None)
    headers = {"Content-Disposition": 'attachment; filename="ledger.checkpoint"'}
    return Response(
        str(log["checkpoint"]).encode(), headers=headers, media_type="application/octet-stream"
    )


async def _signed(link: Any, since: int) -> tuple[VerifyingKey, Checkpoint, list[bytes]]:
    """The key, the checkpoint of now, and what shows that it continues the first entries."""
    try:
        log = await link.checkpoint(since)
    except InvalidInput:  # it claims more entries than there are
        log = await link.checkpoint(None)
    path = [bytes.fromhex(str(one)) for one in log["path"]]
    return VerifyingKey.of(str(log["key"])), Checkpoint.of(str(log["checkpoint"])), path


async def _ledger(visit: Visit, result: Mapping[str, Any] | None = None) -> Values:
    name, who = visit.part("dataset"), visit.who
    link = visit.desk.link(who, name)
    facts, before = link.facts(), visit.query("before")
    end = (
        int(before)
        if before.isascii() and before.isdigit() and len(before) < 16
        else facts.sequence + 1
    )
    start = max(end - 2 * _SHOWN - 1, 0)
    found = await visit.desk.receipts(who, name, start, 1000, everybody=True)
    within = [one for one in found if isinstance(one, Mapping) and int(str(one["number"])) < end]
    rows, more = within[-_SHOWN:], start > 0 or len(within) > _SHOWN
    log = await link.checkpoint(None)
    signed = Checkpoint.of(str(log["checkpoint"]))
    return {
        "dataset": name, "charges": rows[::-1], "older": (rows[0]["number"] if rows else start + 1) if more else None,
        "key": log["key"], "checkpoint": signed, "signed": signed.signed_by(VerifyingKey.of(str(log["key"]))),
        "whole": visit.desk.account(who, name)["whole"], "result": result,
    }  # fmt: skip
