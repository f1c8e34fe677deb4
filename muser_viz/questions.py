"""The lessons' predictions, by name: kept here so that no cell shows an answer before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from muser_viz.errors import InputError
from muser_viz.prediction import Prediction

_QUESTIONS: Mapping[str, tuple[str, int | str, str, tuple[str, ...]]] = MappingProxyType(
    {
        "first wrap": (
            "2,048 rows are live: tokens 0 to 2,047 in rows 0 to 2,047. Token 2,048 arrives. "
            "Which row is it written to?",
            0,
            "at capacity the row is origin_physical, the row of the oldest token; "
            "that is row 0 here, and token 0 is gone.",
            (),
        ),
        "long chunk": (
            "An empty ring of 8 rows is handed a chunk of 11 tokens. How many rows are written?",
            8,
            "tokens 0, 1 and 2 have left the window before the chunk ends; "
            "source rows 3 to 10 are live, and each is written once.",
            (),
        ),
        "packed restore": (
            "The same snapshot is restored from row 0 on instead. What is different?",
            "the logits' last bits",
            "the origins still find every token and its score is the same; "
            "only the order of the sums is another.",
            ("nothing", "some tokens are not found", "the scores", "the logits' last bits"),
        ),
    }
)


def predict(name: str) -> Prediction:
    """A lesson's question to answer before the cell that shows it; InputError for a name that is none."""
    if name not in _QUESTIONS:
        raise InputError(f"prediction {name!r} was asked for; there are {', '.join(_QUESTIONS)}")
    question, answer, why, choices = _QUESTIONS[name]
    return Prediction(question, answer, why, choices)
