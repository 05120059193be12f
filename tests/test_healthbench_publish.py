"""A HealthBench mirror on the Hub: public with a licence though its split is `test`, verified and tampered with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builder.errors import BadInput
from builder.healthbench.mirror import build_healthbench
from builder.hub.guard import check_held_out
from builder.hub.place import HubPlace
from builder.hub.publication import Target
from eval.results.anywhere import Depth, verify_place
from tests.at_hub import changed, client_at, process, put
from tests.examples import make_example, write_examples, write_jsonl
from tests.local_hub import LocalHub
from tests.mirrors import add_held_out, build
from tests.publishing import TOKEN, mirror_of, send, state
from tests.trees import write_tree

REPO = "org/healthbench"
EXAMPLES = "data/healthbench/test-00000-of-00001.parquet"


def test_a_mirror_is_published_and_verified(hub: LocalHub, tmp_path: Path) -> None:
    """All files in one public commit; by digests, in full, and against the JSONL file it holds."""
    source = write_examples(tmp_path / "source")
    mirror = build_healthbench(source, tmp_path / "mirror", repo_id=REPO, with_croissant=True).folder
    put(hub, mirror, REPO, cache=tmp_path / "cache", tag="v1")
    found = state(hub, REPO)
    assert found is not None
    digests = json.loads((mirror / "digests.json").read_bytes())
    assert (False, {*digests["files"], "digests.json"}) == (
        found.private,
        {path for path in found.files if path != ".gitattributes"},
    )

    with client_at(hub, tmp_path / "cache"):
        for depth in (Depth(), Depth(full=True), Depth(with_data=True, data=source)):
            verified = verify_place(HubPlace(REPO, "v1"), depth)
            assert () == verified.findings
            assert digests["dataset_sha256"] == verified.dataset_sha256


@pytest.mark.slow
def test_the_commands_publish_and_verify(hub: LocalHub, tmp_path: Path) -> None:
    """`publish DIR REPO_ID` and `verify REPO_ID` as a person types them; --with-data says what it needs."""
    write_examples(tmp_path / "source")
    for words, code, said in (
        (["build", "source/healthbench.jsonl", "--out", "mirror", "--repo-id", REPO], 0, "3 cases of healthbench"),
        (["publish", "mirror", REPO, "--public", "--yes"], 0, "published: org/healthbench (public, created)"),
        (["verify", REPO], 0, f"{REPO}: ok"),
        (["verify", REPO, "--with-data"], 1, "expected the JSONL file that it was built from, found none"),
        (["verify", REPO, "--data", "source/healthbench.jsonl"], 0, "data            source/healthbench.jsonl"),
    ):
        done = process(hub, tmp_path, *words, HF_TOKEN=TOKEN)
        assert code == done.returncode, done.stderr
        assert said in done.stdout + done.stderr


def test_tampering_on_the_hub_is_found(hub: LocalHub, tmp_path: Path) -> None:
    """A Parquet file of another mirror under this one's digests."""
    mirror = build_healthbench(write_examples(tmp_path / "source"), tmp_path / "mirror").folder
    other = write_jsonl(tmp_path / "other" / "healthbench.jsonl", [make_example(7)])
    wrong = build_healthbench(other, tmp_path / "wrong", license_id="mit").folder
    put(hub, mirror, REPO, cache=tmp_path / "cache")

    with client_at(hub, tmp_path / "cache"):
        place = changed(hub, REPO, "tampered", {EXAMPLES: wrong / EXAMPLES})
        assert EXAMPLES in {finding.file for finding in verify_place(place).findings}


def test_a_mirror_without_a_licence_is_not_public(hub: LocalHub, tmp_path: Path) -> None:
    """As for case panels."""
    path = write_jsonl(tmp_path / "healthbench.jsonl", [make_example()])
    mirror = mirror_of(build_healthbench(path, tmp_path / "mirror").folder)

    with pytest.raises(BadInput, match="its source names no licence"):
        send(hub, mirror, Target(REPO, private=False), cache=tmp_path / "cache")
    assert state(hub, REPO) is None
    assert send(hub, mirror, Target(REPO, private=True), cache=tmp_path / "cache").created


def test_held_out_cases_of_panels_stay_held_out(tmp_path: Path) -> None:
    """A split called `test` is public only where the config is one of HealthBench's."""
    source = write_tree(tmp_path / "source")
    add_held_out(source)
    digests = mirror_of(build(source, tmp_path / "mirror", held_out=True).folder).digests
    examples = mirror_of(build_healthbench(write_examples(tmp_path / "examples"), tmp_path / "hb").folder).digests

    check_held_out(examples, private=False, what="hb")
    with pytest.raises(BadInput, match="holds held-out cases"):
        check_held_out(digests, private=False, what="mirror")
    mixed = {**digests, "panels": [*digests["panels"], *examples["panels"]]}
    with pytest.raises(BadInput, match="holds held-out cases"):
        check_held_out(mixed, private=False, what="mirror")
