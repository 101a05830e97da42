"""The public face of the room: what `sordino.audit` offers."""

from __future__ import annotations

from sordino.audit.computed.exact import exact
from sordino.audit.computed.law import law
from sordino.audit.known_truth import run as run_zoo
from sordino.audit.replayed.replay import replay
from sordino.audit.reporting.report import Dossier, Report, Verdict
from sordino.audit.sampled.black_box import black_box
from sordino.learn.canaries import audit_training

__all__ = ["audit"]


class _Audit:
    """Call it for a black-box audit; its attributes are the other checks."""

    __call__ = staticmethod(black_box)
    exact = staticmethod(exact)
    law = staticmethod(law)
    replay = staticmethod(replay)
    training = staticmethod(audit_training)
    zoo = staticmethod(run_zoo)
    Report, Dossier, Verdict = Report, Dossier, Verdict


audit = _Audit()
