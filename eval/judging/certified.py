"""One word for what a run's certificates come to: the label of every number that its judges decided.

In: what the journal keeps of each judge's certificate at the start of a run. Out: the label in the summary, on screen
and in the results. Whether a certificate is good, `eval.certificates` says.
"""

from __future__ import annotations

from typing import Final

from eval.judging.graded import RunData

BUILTIN: Final = "builtin:"
NOT_NEEDED: Final = "not needed"
"""State of a builtin judge: a stand-in that shows the pipeline."""
VALID: Final = "valid"
FAILED: Final = "failed"
STALE: Final = "stale"
NONE: Final = "none"
WORST_FIRST: Final = (FAILED, STALE, NONE, VALID)
"""States of a judge's certificate."""


def certificate_label(run: RunData) -> str | None:
    """Return the worst state among the certificates of a run's judges, in brackets where it was started all the same.

    None where no judge needs one; `none` where nothing says that a model was certified.
    """
    if run.certified is None:
        models = [judge["model"] for judge in (run.identity or {}).get("judges", ())] or [run.judge_model or ""]
        return None if all(model.startswith(BUILTIN) for model in models) else NONE
    states = {str(judge["state"]) for judge in run.certified["judges"]}
    worst = next((state for state in WORST_FIRST if state in states), None)
    return f"uncertified ({worst})" if run.certified["uncertified"] and worst not in (None, VALID) else worst
