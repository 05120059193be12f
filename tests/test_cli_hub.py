"""The commands `runs`, `fetch` and `verify` at a Hub: what is printed, where, and the exit code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.dataset.digests import folder_digest
from eval.results.folder import write_results
from tests.at_hub import MIRROR, RESULTS, changed, client_at, command, make_hub, process, put, run_names
from tests.journals import write_journal, write_summary
from tests.local_hub import LocalHub
from tests.mirrors import DRUG_SAFETY, digest_of, source_cases
from tests.tampering import PANELS, another, tamper

SEE = f"see bedside-bench runs {RESULTS}"


@pytest.fixture(scope="module")
def hub(made: Path) -> Iterator[LocalHub]:
    """A Hub that holds both, the first run alone under the tag v1; the client has an empty cache."""
    with make_hub() as running, client_at(running, made / "cache"):
        commits = [
            put(running, folder, repo, cache=made / "cache", tag=tag).commit
            for folder, repo, tag in (
                (made / "mirror", MIRROR, "v1"),
                (made / "out" / "runs" / run_names(made)[0], RESULTS, "v1"),
                (made / "out", RESULTS, "v2"),
            )
        ]
        (made / "commits.json").write_text(json.dumps(commits))
        yield running


def commit_of(made: Path, number: int) -> str:
    """Return the commit of the mirror (0), of the first run (1) or of both (2)."""
    return str(json.loads((made / "commits.json").read_text())[number])


def widest(out: str) -> int:
    """Return the columns of the widest line."""
    return max(map(len, out.splitlines()))


# -- verify


def test_verify_says_what_was_compared(hub: LocalHub, made: Path) -> None:
    """Of a mirror: counts, digests, commit, and that the Hub's digests were compared; nothing on stderr, 80 columns."""
    code, out, err = command("verify", MIRROR)

    assert (0, "", 80) == (code, err, widest(out))
    assert [
        f"{MIRROR}: ok",
        "cases           2",
        "rubric items    8",
        f"dataset_sha256  {digest_of(source_cases(made / 'source', ('drug_safety',)))}",
    ] == out.splitlines()[:4]
    assert [
        f"commit          {commit_of(made, 0)}",
        "checked         the Hub's file digests against digests.json (fast); --full",
        "                downloads and recomputes",
    ] == out.splitlines()[5:8]
    assert f"folder digest   {folder_digest(made / 'mirror')}" == out.splitlines()[-1]
    assert hub.log


@pytest.mark.usefixtures("hub")
def test_verify_full_says_so(made: Path) -> None:
    """With --full the Hub's digests were compared and everything recomputed, and a person reads that."""
    code, out, err = command("verify", f"hf://datasets/{MIRROR}@v1", "--full")

    assert (0, "", f"{MIRROR}@v1: ok") == (code, err, out.splitlines()[0])
    assert "checked         the Hub's file digests, and every number recomputed from the" in out.splitlines()
    assert f"commit          {commit_of(made, 0)}" in out.splitlines()


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("options", [[], ["--full"]], ids=["fast", "full"])
def test_verify_lists_the_runs_of_results(made: Path, options: list[str]) -> None:
    """Each run with its folder digest below it, all in 80 columns."""
    code, out, _ = command("verify", RESULTS, *options)
    lines = out.splitlines()

    assert (0, 80) == (code, widest(out))
    assert "runs            2" in lines
    for name in run_names(made):
        assert " " * 16 + folder_digest(made / "out" / "runs" / name) == lines[lines.index(f"runs/{name}") + 1]


def test_verify_names_what_was_changed_there(hub: LocalHub, made: Path) -> None:
    """A line a finding, then the count, and exit code 1."""
    changed(hub, MIRROR, "broken", {DRUG_SAFETY: b"PAR1", "NEWS.md": b"\n"})
    code, out, err = command("verify", f"{MIRROR}@broken")
    size = (made / "mirror" / DRUG_SAFETY).stat().st_size

    assert (1, "") == (code, err)
    assert [
        f"{DRUG_SAFETY}: size: expected {size} bytes, found 4 bytes",
        "NEWS.md: stray file: expected only what digests.json lists, found a file that it does not list",
        f"{MIRROR}@broken: 2 findings",
    ] == out.splitlines()


@pytest.mark.usefixtures("hub")
def test_verify_takes_the_digest_that_somebody_vouches_for(made: Path) -> None:
    """--expect with the right digest is exit code 0, with another 1."""
    assert 0 == command("verify", MIRROR, "--expect", folder_digest(made / "mirror"))[0]
    code, out, _ = command("verify", RESULTS, "--expect", "0" * 64)

    assert (1, f"runs: folder digest: expected one run with {'0' * 64}, found none") == (code, out.splitlines()[0])


@pytest.mark.usefixtures("hub")
def test_verify_with_data_says_which_data(made: Path) -> None:
    """--data alone asks for the link to those data: of a mirror, to its source; without a place for it, one line."""
    code, out, err = command("verify", MIRROR, "--data", made / "source")

    assert (0, "") == (code, err)
    assert f"data            {made / 'source'}" in out.splitlines()
    said = "names no Hub dataset that it was built from; give its source with --data"
    assert (1, "", f"error: {MIRROR}: {said}\n") == command("verify", MIRROR, "--with-data")


def test_a_person_verifies_in_a_process_of_its_own(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """From HF_ENDPOINT alone, without a token, `bedside-bench verify` finds a public mirror whole."""
    done = process(hub, tmp_path, "verify", MIRROR, "--full")

    assert (0, "", f"{MIRROR}: ok") == (done.returncode, done.stderr, done.stdout.splitlines()[0])
    assert f"folder digest   {folder_digest(made / 'mirror')}" == done.stdout.splitlines()[-1]


# -- runs


@pytest.mark.parametrize("where", ["repository", "folder"])
def test_runs_are_listed(hub: LocalHub, made: Path, where: str) -> None:
    """Three lines a run, its whole name first, from the index alone: of a repository no other table is asked for."""
    hub.log.clear()
    code, out, err = command("runs", RESULTS if where == "repository" else made / "out")
    first, second = run_names(made)

    assert (0, "") == (code, err)
    assert widest(out) <= 80
    assert [first, second, "2 runs"] == [line for line in out.splitlines() if not line.startswith(" ")]
    about = "  bedside-bench-grading-v1, judge test-judge, data eb4f5c9d1446"
    assert [about, about] == [line for line in out.splitlines() if "judge" in line]
    assert "5 of 8 cases graded" in out
    assert not [line for line in hub.log if "scores" in line["path"]]


@pytest.mark.usefixtures("hub")
def test_one_run_at_a_tag_is_listed(made: Path) -> None:
    """The tag v1 holds the first run alone; so does that run's own folder."""
    code, out, _ = command("runs", f"{RESULTS}@v1")

    assert (0, run_names(made)[0], "1 run") == (code, out.splitlines()[0], out.splitlines()[-1])
    assert out == command("runs", made / "out" / "runs" / run_names(made)[0])[1]


@pytest.mark.usefixtures("hub")
def test_runs_as_json(made: Path) -> None:
    """--json prints the index and nothing else, numbers to the last digit, the same for a repository and a folder."""
    code, out, err = command("runs", RESULTS, "--json")
    rows = json.loads(out)

    assert (0, "") == (code, err)
    assert run_names(made) == [row["run_id"] for row in rows]
    assert [["test-judge"]] * 2 == [row["judge_models"] for row in rows]
    assert not {"identity_json", "summary_json"} & rows[0].keys()
    assert out == command("runs", made / "out", "--json")[1]


@pytest.mark.usefixtures("hub")
def test_runs_of_something_else_are_one_line(made: Path, here: Path) -> None:
    """A mirror, on the Hub or here, an empty folder and a name that is nowhere have no runs to list."""
    (here / "empty").mkdir()
    expected = "expected a results folder or one run of it, found another folder"
    for where, said in {
        MIRROR: "expected a results dataset (runs/<run_id>/), found a mirror",
        str(made / "mirror"): expected,
        str(here / "empty"): expected,
        "nowhere": "expected a folder or a Hub dataset (namespace/name[@revision]), found none",
    }.items():
        assert (1, "", f"error: {where}: {said}\n") == command("runs", where)


def test_names_of_others_cannot_steer_the_terminal(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """A judge's name with control characters is printed with escapes."""
    run = Path(shutil.copytree(made / "out" / "runs" / run_names(made)[0], tmp_path / run_names(made)[0]))
    tamper(run, "run", 0, "judge_models", lambda _: ["\x1b[2J\nnice"])
    at = f"runs/{run.name}/"
    changed(hub, RESULTS, "steer", {f"{at}{name}": run / name for name in ("run.parquet", "digests.json")})
    code, out, _ = command("runs", f"{RESULTS}@steer")

    assert 0 == code
    assert "judge \\u001b[2J\\u000anice, data " in out
    assert "\x1b" not in out


def test_names_of_others_cannot_steer_the_terminal_in_an_error(hub: LocalHub, made: Path) -> None:
    """A run that calls itself something with control characters is named on one line, with escapes."""
    name = run_names(made)[0]
    digests = json.loads((made / "out" / "runs" / name / "digests.json").read_bytes()) | {"run_id": "\x1b[2J\nnice"}
    changed(hub, RESULTS, "called", {f"runs/{name}/digests.json": json.dumps(digests).encode()})
    code, _, err = command("runs", f"{RESULTS}@called")

    assert (1, 1) == (code, err.count("\n"))
    assert r"expected run_id " + name + r", found '\x1b[2J\nnice'; remove that run" in err


# -- fetch


@pytest.mark.usefixtures("hub")
def test_a_run_is_fetched_by_its_whole_name(made: Path, here: Path) -> None:
    """It lies in the results folder with its card, verifies there, and is what was published to the byte."""
    name = run_names(made)[0]
    code, out, err = command("fetch", RESULTS, name, "--out", "got")
    published, got = made / "out" / "runs" / name, here / "got" / "runs" / name

    assert (0, "") == (code, err)
    assert [
        f"fetched: got/runs/{name}",
        f"commit         {commit_of(made, 2)}",
        f"folder digest  {folder_digest(published)}",
        "verified       every file, and every number from the decisions",
    ] == out.splitlines()
    assert [(path.name, path.read_bytes()) for path in sorted(published.iterdir())] == [
        (path.name, path.read_bytes()) for path in sorted(got.iterdir())
    ]
    assert not any(path.is_symlink() for path in got.iterdir())
    assert 0 == command("verify", "got")[0]


@pytest.mark.usefixtures("hub")
def test_a_run_is_fetched_by_its_eight_digits_or_its_beginning(made: Path, here: Path) -> None:
    """The hex digits at its end name a run, and so does a beginning that no other has: at the tag there is one run."""
    first, second = run_names(made)

    assert f"fetched: a/runs/{second}" == command("fetch", RESULTS, second[-8:], "--out", "a")[1].splitlines()[0]
    assert f"fetched: b/runs/{first}" == command("fetch", f"{RESULTS}@v1", "2026-03", "--out", "b")[1].splitlines()[0]
    assert ["a", "b"] == sorted(path.name for path in here.iterdir())


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(("wanted", "found"), [("2026", "2 of them"), ("", "2 of them"), ("2025", "none")])
def test_a_name_of_several_runs_or_none_is_one_line(here: Path, wanted: str, found: str) -> None:
    """Nothing is fetched: the line says how many have such a name, and where to see them."""
    code, out, err = command("fetch", RESULTS, wanted, "--out", "got")

    assert (1, "") == (code, out)
    assert f"error: {RESULTS}: expected one run called {wanted}, found {found}; {SEE}\n" == err
    assert [] == list(here.iterdir())


@pytest.mark.usefixtures("hub")
def test_fetched_twice_is_there_already(made: Path, here: Path) -> None:
    """The second time nothing changes; the other run is added beside it, and the card lists both."""
    first, second = run_names(made)
    command("fetch", RESULTS, first, "--out", "got")
    before = (here / "got" / "README.md").read_bytes()
    code, out, _ = command("fetch", RESULTS, first, "--out", "got")

    assert (0, f"already there, unchanged: got/runs/{first}") == (code, out.splitlines()[0])
    assert before == (here / "got" / "README.md").read_bytes()
    assert 0 == command("fetch", RESULTS, second, "--out", "got")[0]
    assert command("runs", RESULTS) == command("runs", "got")


def test_a_run_tampered_with_is_not_fetched(hub: LocalHub, made: Path, here: Path) -> None:
    """Where its digests say so nothing is downloaded, and where only its numbers do nothing stays."""
    run = Path(shutil.copytree(made / "out" / "runs" / run_names(made)[0], made / run_names(made)[0]))
    at = f"runs/{run.name}/"
    changed(hub, RESULTS, "cut", {f"{at}scores.parquet": b"PAR1"})
    tamper(run, "scores", 0, "score", another)
    changed(hub, RESULTS, "forged", {f"{at}{name}": run / name for name in ("scores.parquet", "digests.json")})
    cut = command("fetch", f"{RESULTS}@cut", run.name, "--out", "got")
    forged = command("fetch", f"{RESULTS}@forged", run.name, "--out", "got")

    assert cut[2].startswith(f"error: {RESULTS}@cut: {at}scores.parquet: size: expected ")
    assert cut[2].endswith("found 4 bytes; nothing was fetched\n")
    assert forged[2].startswith(f"error: {run.name}: scores.parquet: ")
    assert forged[2].endswith("; nothing was added\n")
    assert [1, "", 1, ""] == [*cut[:2], *forged[:2]]
    assert [] == [path for path in here.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("hub")
def test_a_run_is_not_fetched_into_something_else(made: Path, here: Path) -> None:
    """A mirror, a folder of other things and results on data of another licence stay as they are."""
    journal = write_journal(here / "z.jsonl", panels=PANELS, license_id="mit")
    write_results(journal, here / "mit", summary_bytes=write_summary(journal))
    shutil.copytree(made / "mirror", here / "mirror")
    (here / "other").mkdir()
    (here / "other" / "notes.txt").touch()
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*") if path.is_file()}
    for out, said in {
        "mit": "mit: expected runs on data of one licence, found cc-by-4.0, mit; use a folder for each",
        "mirror": "mirror: expected a results folder, found a mirror or a single run; name another place",
        "other": "other: expected a results folder or an empty one, found notes.txt in it; name another folder",
    }.items():
        assert (1, "", f"error: {said}\n") == command("fetch", RESULTS, run_names(made)[0], "--out", out)
    assert before == {path: path.stat().st_mtime_ns for path in here.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("hub")
def test_fetch_asks_for_a_results_dataset_on_the_hub(made: Path, here: Path) -> None:
    """A mirror has no runs, and a folder is not the Hub."""
    code, _, err = command("fetch", MIRROR, "2026", "--out", "got")
    assert (1, f"error: {MIRROR}: expected a results dataset (runs/<run_id>/), found a mirror\n") == (code, err)

    code, _, err = command("fetch", made / "out", "2026", "--out", "got")
    assert 1 == code
    assert err.startswith(f"error: {made / 'out'}: expected a Hub dataset, found a folder")
    assert [] == list(here.iterdir())


@pytest.mark.parametrize("tag", ["main", "-v1", "v1.", "v1.lock", "a.lock/b", "v1/", "a//b", "a/.b", "v1..2", "v 1"])
def test_a_tag_that_git_refuses(here: Path, tag: str) -> None:
    """A tag's name is wrong usage before anything is read or sent."""
    code, out, err = command("publish", here, RESULTS, f"--tag={tag}")

    assert (2, "") == (code, out)
    assert "expected a tag such as v1.0.0" in err
