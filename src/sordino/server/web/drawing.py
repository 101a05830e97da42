"""An answer as it is shown: read from what was stored, combined with others, and written. It may take seconds."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from sordino.answer.answer import Answer
from sordino.answer.combine import combined

__all__ = ["arrow", "csv", "drawn"]

T = TypeVar("T")


def drawn(
    bodies: Sequence[bytes], fixed: Collection[str], note: str, draw: Callable[[Answer], T]
) -> T:
    """What `draw` makes of stored answers to one question, the dearest last;
    `fixed` are the numbers that can be mixed.
    """
    answers = [Answer.from_json(body.decode()) for body in bodies]
    widths = [{c.name: float(c.estimates.half_width.max()) if c.name in fixed and len(c) else None
               for c in answer.estimates} for answer in answers]  # fmt: skip
    answer = combined(answers, widths)
    return draw(replace(answer, notes=(note, *answer.notes)) if note else answer)


def csv(answer: Answer) -> bytes:
    """As a table of text."""
    return answer.to_csv().encode()


def arrow(answer: Answer) -> bytes:
    """As a stream of Arrow."""
    import pyarrow as pa

    table, sink = answer.to_arrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
