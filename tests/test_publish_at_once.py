"""Publishing to one results dataset by many at the same moment: nothing is lost, and nobody sees an error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from builder.hub.publication import Published, Target
from builder.hub.publish import Pauses
from eval.hub.publish import ResultsPublication
from eval.results.card import listed_runs
from eval.results.folder import write_results
from tests.journals import write_journal, write_summary
from tests.local_hub import LocalHub
from tests.publishing import (
    ONE_PANEL,
    RESULTS,
    SECOND,
    TOKEN,
    card,
    findings,
    only,
    publication_of,
    run_of,
    send,
    state,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ResultsPublication]:
    """Return three runs."""
    work = tmp_path_factory.mktemp("runs")
    return [run_of(work, shift) for shift in range(3)]


def publish_at_once(hub: LocalHub, publications: list[ResultsPublication], work: Path) -> list[Published]:
    """Publish all of them to one repository, which is not there yet, each by a client and thread of its own."""
    start = Barrier(len(publications))

    def publish_one(number: int) -> Published:
        start.wait()
        token = (TOKEN, SECOND)[number % 2]
        cache = work / str(number)
        return send(hub, publications[number], Target(RESULTS), cache=cache, token=token, pauses=Pauses(0.01))

    with ThreadPoolExecutor(len(publications)) as executor:
        return list(executor.map(publish_one, range(len(publications))))


@pytest.mark.parametrize("n", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_many_publishers_at_once(hub: LocalHub, tmp_path: Path, n: int) -> None:
    """As many runs at the same moment to a repository that nobody made yet: a commit each, no error, all listed."""
    publications = [numbered_run(tmp_path, number) for number in range(n)]
    names = sorted(only(run).run_id for run in publications)

    published = publish_at_once(hub, publications, tmp_path / "caches")

    found = state(hub, RESULTS)
    assert found is not None
    assert n == len(set(names))
    assert {f"Add {name}" for name in names} | {"initial commit"} == set(found.titles)
    assert n + 1 == found.commits == len(found.titles)
    assert names == listed_runs(card(hub))
    assert [] == findings(hub, tmp_path / "check")
    assert n == len({one.commit for one in published})


def numbered_run(folder: Path, number: int) -> ResultsPublication:
    """Return one of many runs: of another day each."""
    day = f"2026-03-{number + 1:02}"
    journal = write_journal(folder / f"{day}.jsonl", cases_per_panel=1, panels=ONE_PANEL, shift=number, day=day)
    return publication_of(write_results(journal, folder / day, summary_bytes=write_summary(journal)).path)


def test_the_same_run_many_times_at_once(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """One run published by many at the same moment is one commit, and nobody sees an error."""
    published = publish_at_once(hub, [runs[0]] * 8, tmp_path)

    found = state(hub, RESULTS)
    assert found is not None
    assert 2 == found.commits
    assert 1 == len({one.commit for one in published})
