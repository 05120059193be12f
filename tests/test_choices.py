"""What a person chose, as the plan of a run; what cannot be run is refused before anything is asked."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from builder.mirror import build_mirror
from builder.tree.sources import open_source
from eval.calls.choices import Choices, make_plan
from eval.calls.endpoint import Endpoint
from eval.calls.plan import Judge, Limits, Model, Plan
from tests.plans import POLICY, VERBATIM
from tests.trees import case_id_of, write_tree

MODEL = Model("m", Endpoint("http://127.0.0.1:1/v1"))


@pytest.fixture(scope="module")
def choose(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Plan]:
    """Return a function from options to the plan over a mirror of two cases a panel."""
    root = tmp_path_factory.mktemp("choices")
    build_mirror(open_source(write_tree(root / "tree", 2)), root / "mirror")

    def plan(**options: Any) -> Plan:
        return make_plan(Choices(root / "mirror", **{"answer": MODEL, "judges": (Judge(VERBATIM),), **options}))

    return plan


def test_the_defaults_are_the_protocol(choose: Callable[..., Plan]) -> None:
    """All cases in dataset order, the protocol's texts, temperature 1 as an integer."""
    plan = choose()
    identity = plan.identity()

    assert 20 == len(plan.cases)
    assert "bedside-bench-grading-v1" == identity["protocol"]
    assert int is type(identity["answer"]["params"]["temperature"])
    assert {"panels": None, "smoke": False, "limit": None} == identity["selection"]


def test_the_selection_is_recorded_in_dataset_order(choose: Callable[..., Plan]) -> None:
    """The same panels in another order, or one named twice, are the same run."""
    one = choose(panels=("health_equity", "drug_safety"), smoke=True, limit=5)
    two = choose(panels=("drug_safety", "health_equity", "drug_safety"), smoke=True, limit=5)

    assert {"panels": ["drug_safety", "health_equity"], "smoke": True, "limit": 5} == one.identity()["selection"]
    assert one.identity() == two.identity()
    assert [case_id_of(panel, 0) for panel in ("drug_safety", "health_equity")] == [c.case_id for c in one.cases]


def test_answers_of_a_file_name_their_own_model(choose: Callable[..., Plan], tmp_path: Path) -> None:
    """The model is the file's, else the one that is named, else plainly "given answers"; nothing is sent to it."""
    path = tmp_path / "a.jsonl"
    line = {"case_id": "c", "answer": "a"}
    path.write_text(json.dumps(line))
    unnamed, named = choose(answers=path, answer=None), choose(answers=path)
    path.write_text(json.dumps({**line, "answer_model": "builtin:refuse"}))
    policy = choose(answers=path, answer=None)

    assert ["given answers", "m", "builtin:refuse"] == [plan.answer.name for plan in (unnamed, named, policy)]
    assert {"file"} == {plan.answer_source for plan in (unnamed, named, policy)}
    about = policy.identity()["answer"]
    assert (None, {}, None) == (about["endpoint"], about["params"], about["system_sha256"])
    assert hashlib.sha256(path.read_bytes()).hexdigest() == about["file_sha256"]


def test_another_system_text_is_sent_to_the_byte(choose: Callable[..., Plan], tmp_path: Path) -> None:
    """--system FILE replaces the answer model's system text, trailing newline included, and the run says so."""
    (tmp_path / "s.txt").write_bytes("Sé breve.\r\n".encode())
    plan = choose(system=tmp_path / "s.txt")

    assert "Sé breve.\r\n" == plan.answer_request(plan.cases[0]).messages[0]["content"]
    assert plan.identity()["protocol"].startswith("bedside-bench-grading-v1+")


@pytest.mark.parametrize(("value", "sent"), [(1.0, "1"), (0.0, "0"), (0.7, "0.7"), (-0.0, "0")])
def test_a_temperature_is_recorded_in_one_form(choose: Callable[..., Plan], value: float, sent: str) -> None:
    """1.0 is asked for and digested as 1, so that it is the same run."""
    assert sent == json.dumps(choose(temperature=value).identity()["answer"]["params"]["temperature"])


def test_a_policy_has_no_temperature(choose: Callable[..., Plan]) -> None:
    """What is never sent is null, not the default."""
    assert choose(answer=POLICY).reading.answer_temperature is None


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown policy": ({"answer": Model("builtin:guess")}, "--answer-model builtin:guess: expected one of builtin:ref"),
    "policy as judge": (
        {"judges": (Judge(Model("builtin:refuse")),)},
        "--judge-model builtin:refuse: expected builtin:verbatim",
    ),
    "no judge": ({"judges": ()}, "expected a judge model, found none"),
    "nobody answers": ({"answer": None}, "expected an answer model or a file of answers, found neither"),
    "panel not there": ({"panels": ("mine",)}, "--panel mine: expected one of"),
    "not a number": ({"temperature": math.nan}, "--temperature: expected a number from 0 to 100, found nan"),
    "endless": ({"limits": Limits(timeout_s=math.inf)}, "--timeout: expected seconds above 0, found inf"),
    "no time": ({"limits": Limits(deadline_s=0)}, "--deadline: expected seconds above 0, found 0"),
    "no system file": ({"system": Path("none.txt")}, "none.txt: expected a UTF-8 text file for --system, found:"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_run_is_one_clear_error(
    choose: Callable[..., Plan], options: dict[str, Any], message: str
) -> None:
    """Every wrong choice is refused before a call is made, and the option is named."""
    with pytest.raises(BadInput) as refused:
        choose(**options)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_system_file_that_is_no_text_is_refused(choose: Callable[..., Plan], tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are not guessed at."""
    (tmp_path / "s.txt").write_bytes(b"\xff\xfe")

    with pytest.raises(BadInput, match="expected a UTF-8 text file for --system"):
        choose(system=tmp_path / "s.txt")
