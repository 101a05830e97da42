"""A holdout inside the real scikit-learn: searches, cross-validation, its end, clones, processes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sordino.adaptive.holdout import Holdout
from sordino.errors import BudgetExceeded, InvalidInput
from tape import Tape, replay

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(8000, 5))
Y = (X[:, 0] + RANDOM.normal(size=8000) > 0).astype(int)
NOISE = RANDOM.integers(0, 2, 8000)
TRAIN, HELD = slice(0, 3000), slice(3000, 8000)


def _search(holdout: Holdout, depths: list[Any], **more: Any) -> GridSearchCV:
    tree, how = DecisionTreeClassifier(random_state=0), {"error_score": "raise", **more}
    return GridSearchCV(
        tree, {"max_depth": depths}, scoring=holdout.scorer(), cv=holdout.splitter(), **how
    )


def _holdout(targets: Any = Y, **more: Any) -> Holdout:
    return Holdout((X[HELD], targets[HELD]), **{"epsilon": 4, **more})


def test_a_search_is_not_fooled_by_what_was_learnt_by_heart() -> None:
    with replay(Tape(1)):
        holdout = _holdout()
        found = _search(holdout, [1, 3, None]).fit(X[TRAIN], Y[TRAIN])
    scores = dict(zip([1, 3, None], found.cv_results_["mean_test_score"], strict=True))
    truth = {
        d: DecisionTreeClassifier(max_depth=d, random_state=0).fit(X[TRAIN], Y[TRAIN])
        for d in scores
    }
    for depth, model in truth.items():
        assert abs(scores[depth] - model.score(X[HELD], Y[HELD])) < 0.06
    assert truth[None].score(X[TRAIN], Y[TRAIN]) == 1.0
    assert found.best_params_["max_depth"] in (1, 3)
    assert holdout.asked == 3
    assert holdout.left < 10


def test_cross_validation_asks_the_holdout_for_each_fold() -> None:
    with replay(Tape(2)):
        holdout = _holdout()
        one = cross_val_score(DecisionTreeClassifier(max_depth=2), X[TRAIN], Y[TRAIN], scoring=holdout.scorer(),
                              cv=holdout.splitter(), error_score="raise")  # fmt: skip
        five = cross_val_score(
            LogisticRegression(),
            X[TRAIN],
            Y[TRAIN],
            scoring=holdout.scorer(),
            cv=5,
            error_score="raise",
        )
    assert (len(one), len(five), holdout.asked) == (1, 5, 6)
    assert all(0.65 < score < 0.85 for score in (*one, *five))


def test_a_used_up_holdout_ends_the_search() -> None:
    with replay(Tape(3)):
        search = _search(holdout := _holdout(NOISE, most=2), [None, 20, 15, 12])
        with pytest.raises(BudgetExceeded, match="corrected 2 values"):
            search.fit(X[TRAIN], NOISE[TRAIN])
    assert holdout.left == 0


def test_processes_are_refused_and_nothing_is_asked() -> None:
    search = _search(holdout := _holdout(), [1, 2], n_jobs=2)
    with pytest.raises(Exception, match="pickle") as refused:
        search.fit(X[TRAIN], Y[TRAIN])
    causes: list[BaseException] = [refused.value]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    assert any(isinstance(cause, InvalidInput) for cause in causes) or "n_jobs=1" in "".join(
        map(str, causes)
    )
    assert holdout.asked == 0
    with pytest.raises(InvalidInput, match="n_jobs=1"):
        pickle.dumps(holdout.scorer())


def test_a_clone_asks_the_same_holdout() -> None:
    search = _search(holdout := _holdout(), [1])
    clone(search).fit(X[TRAIN], Y[TRAIN])
    assert holdout.asked == 1


def test_texts_are_rehearsed_on_the_rows_at_hand() -> None:
    """A blank text is no category that was seen; rows of the search are, and they are no secret."""
    frame = pd.DataFrame({"ward": np.where(Y == 1, "a", "b"), "age": X[:, 0]})
    holdout = Holdout((frame[HELD], Y[HELD]), epsilon=4)
    model = make_pipeline(OneHotEncoder(), LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1]}
    texts = Holdout((frame[["ward"]][HELD], Y[HELD]), epsilon=4)
    with replay(Tape(4)):
        found = GridSearchCV(
            model, grid, scoring=texts.scorer(), cv=texts.splitter(), error_score="raise"
        )
        found.fit(frame[["ward"]][TRAIN], Y[TRAIN])
    assert found.best_score_ == 1.0
    fitted = model.fit(frame[["ward"]][TRAIN], Y[TRAIN])
    with pytest.raises(InvalidInput, match="other columns"):
        holdout.scorer()(fitted, frame[["ward"]][TRAIN], Y[TRAIN])
    assert holdout.asked == 0


@pytest.mark.parametrize(
    ("metric", "shape"),
    [
        (accuracy_score, "1.0"),
        (lambda y, p: y[:, None] == p, "3000, 3000"),
        (lambda y, p: p * np.nan, ""),
    ],
)
def test_a_metric_must_score_each_row(metric: Any, shape: str) -> None:
    holdout, model = _holdout(), DecisionTreeClassifier().fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(InvalidInput, match=f"returned .*{shape}.*each of 3000 rows"):
        holdout.scorer(metric)(model, X[TRAIN], Y[TRAIN])
    assert holdout.asked == 0


def test_targets_must_be_flat() -> None:
    model = DecisionTreeClassifier().fit(X[TRAIN], Y[TRAIN])
    for column in (Y[:, None], pd.DataFrame({"y": Y}), Y[:0]):
        with pytest.raises(InvalidInput, match="flat"):
            _holdout().scorer()(model, X[TRAIN], column[TRAIN])
    for column in (Y[:, None], pd.DataFrame({"y": Y})):
        with pytest.raises(InvalidInput, match="flat"):
            _holdout(column).scorer()


def test_a_model_that_cannot_score_is_refused_before_the_holdout_is_touched() -> None:
    holdout, other = _holdout(), DecisionTreeClassifier().fit(X[TRAIN, :3], Y[TRAIN])
    with pytest.raises(ValueError, match="features"):
        holdout.scorer()(other, X[TRAIN], Y[TRAIN])
    with pytest.raises(InvalidInput, match="of shape"):
        holdout.scorer()(other, X[TRAIN, :3], Y[TRAIN])
    assert holdout.asked == 0


def test_columns_in_another_order_are_refused_before_anything_is_spent() -> None:
    """A model that reads columns by their places would score about nothing, and use up a correction."""
    frame = pd.DataFrame(X, columns=list("abcde"))
    holdout = Holdout((frame[HELD][list("edcba")], Y[HELD]), epsilon=4)
    model = DecisionTreeClassifier(max_depth=3).fit(frame[TRAIN], Y[TRAIN])
    with pytest.raises(InvalidInput, match="another order, 'a' where the sample has 'e'"):
        holdout.scorer()(model, frame[TRAIN], Y[TRAIN])
    assert (holdout.asked, holdout.left) == (0, 10)


def test_a_scorer_is_no_metric() -> None:
    scorers: list[Any] = [
        make_scorer(accuracy_score),
        lambda estimator, X, y: estimator.score(X, y),
        _holdout().scorer(),
    ]
    for scorer in scorers:
        with pytest.raises(InvalidInput, match=r"got a scorer.*Pass a metric of rows"):
            _holdout().scorer(scorer)
    with pytest.raises(InvalidInput, match="two arguments"):
        _holdout().scorer(lambda p: p)  # type: ignore[misc, arg-type]
    for metric in (np.equal, max, lambda y, p, w=1: y == p):
        _holdout().scorer(metric)
