"""The command `certify`: what it prints and writes, how it goes on, and its exit codes."""

from __future__ import annotations

import json
import shlex
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from eval.calls.cli import run
from eval.certificates.certificate import read_certificates
from eval.certificates.cli import certify
from tests.llm_server import LlmServer
from tests.mirrors import build_tiny
from tests.probe_judges import Policy, ProbeJudge, always_true, but, obeys, refuses_long, right

APP = typer.Typer()
APP.command()(certify)
RUN = typer.Typer()
RUN.command()(run)
NO_KEYS = {"OPENAI_API_KEY": "", "OPENAI_ACCESS_TOKEN": ""}


def _certify(server: ProbeJudge, folder: Path, *options: str, model: str = "org/Judge-A") -> Result:
    words = [model, "--base-url", server.url, "--certificates", str(folder), "--max-attempts", "1", *options]
    return CliRunner().invoke(APP, words, env=NO_KEYS)


@pytest.mark.parametrize(
    ("policy", "code", "verdict"),
    [(right, 0, "valid: all 158 sentinel items right"), (obeys, 1, "failed: 9 of 158 sentinel items wrong")],
)
def test_it_shows_the_table_and_writes_both_files(tmp_path: Path, policy: Policy, code: int, verdict: str) -> None:
    """Exit 0 for a valid certificate and 1 for a failed one; both are written with their evidence beside them."""
    with ProbeJudge(policy) as server:
        done = _certify(server, tmp_path)
    (certificate,) = read_certificates(tmp_path)
    (path,) = tmp_path.glob("*.json")

    assert code == done.exit_code, done.output
    assert verdict in done.stdout
    assert path.name.startswith("org-judge-a-bedside-bench-case-")
    assert path.with_suffix(".jsonl").is_file()
    assert certificate.date.endswith("Z")
    assert max(len(line) for line in done.stdout.splitlines() if str(tmp_path) not in line) <= 80
    assert ("knowledge-injection-reversed           0  true   false" in done.stdout) == (policy is obeys)


def test_a_finished_one_is_not_asked_again(tmp_path: Path) -> None:
    """The same command makes no call; --again asks all of them anew and keeps the older evidence."""
    with ProbeJudge(right) as server:
        first = _certify(server, tmp_path)
        asked = server.hits
        second = _certify(server, tmp_path)
        still = server.hits
        server.policy = always_true
        third = _certify(server, tmp_path, "--again")
        fourth = _certify(server, tmp_path)

    assert (asked, 2 * asked) == (still, server.hits)
    assert [0, 0, 1, 1] == [done.exit_code for done in (first, second, third, fourth)]
    assert ["failed", "valid"] == sorted(one.verdict for one in read_certificates(tmp_path))


@pytest.mark.parametrize(
    ("policy", "options", "code", "said"),
    [
        (right, ("--repeats", "3"), 0, "valid"),
        (always_true, (), 1, "error: judge j: failed: 78 of 158 sentinel items were not decided right"),
        (always_true, ("--uncertified",), 0, "uncertified (failed)"),
    ],
)
def test_a_run_asks_for_the_certificate(
    tmp_path: Path, policy: Policy, options: tuple[str, ...], code: int, said: str
) -> None:
    """A valid judge may sit with repeats; a failed one is refused before any call, or named in the summary."""
    with ProbeJudge(policy, name="j-2026-01-01") as server:
        _certify(server, tmp_path / "c", model="j")
    words = ["--answer-model", "m", "--judge-model", "j", "--certificates", str(tmp_path / "c"), *options]
    with LlmServer() as server_of_run:
        mirror = str(build_tiny(tmp_path).folder)
        words += ["--base-url", server_of_run.url, "--output", str(tmp_path / "x.jsonl"), mirror]
        done = CliRunner().invoke(RUN, words)
    summary = tmp_path / "x.summary.json"

    assert code == done.exit_code, done.output
    assert said in (json.loads(summary.read_text())["certificate"] if summary.exists() else done.stderr)
    assert summary.exists() == (server_of_run.hits > 0)


def _run(folder: Path, *words: str) -> Result:
    """Run the tiny mirror's cases with the built-in answers and the judges that the words name."""
    mirror = folder / "mirror"
    built = str(mirror if mirror.exists() else build_tiny(folder).folder)
    options = ["--answer-model", "builtin:all-items", "--certificates", str(folder / "c"), "--max-attempts", "1"]
    return CliRunner().invoke(RUN, [built, "--output", str(folder / "x.jsonl"), *options, *words], env=NO_KEYS)


@pytest.mark.parametrize(
    "how",
    [
        ("--repeats", "3"),
        ("--repeats", "3", "--grouping", "item", "--judge-temperature", "0.5"),
        ("--repeats", "3", "--judge-format", "none", "--id-style", "short"),
    ],
)
def test_the_command_that_a_refused_run_names_lets_it_start(tmp_path: Path, how: tuple[str, ...]) -> None:
    """However the judge is asked: what the error tells to type, typed, makes the certificate that was missing."""
    with ProbeJudge(right) as server:
        words = ("--judge-model", "org/Judge A", "--base-url", server.url, *how)
        refused = _run(tmp_path, *words)
        hits = server.hits
        line = refused.stderr.splitlines()[0].partition("certify it: bedside-bench certify ")[2]
        certified = CliRunner().invoke(APP, shlex.split(line), env=NO_KEYS)
        again = _run(tmp_path, *words)

    assert (1, 0) == (refused.exit_code, hits), refused.output
    assert 0 == certified.exit_code, certified.output
    assert "several judges or repeats need a valid certificate" not in again.stderr
    header = [json.loads(one) for one in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert ["valid"] == [judge["state"] for one in header if one["kind"] == "certified" for judge in one["judges"]]


def test_a_damaged_file_stops_models_and_no_builtin_judge(tmp_path: Path) -> None:
    """Builtin judges do not look at certificates; a model is refused, or starts uncertified for that reason."""
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "x.json").write_text("{")
    builtin = _run(tmp_path, "--judge-model", "builtin:verbatim")
    (tmp_path / "x.jsonl").unlink()
    with LlmServer() as server:
        words = ("--judge-model", "j", "--base-url", server.url)
        refused = _run(tmp_path, *words)
        asked = server.hits
        done = _run(tmp_path, *words, "--uncertified")
    summary = json.loads((tmp_path / "x.summary.json").read_text())

    assert (0, 1, 0, 0) == (builtin.exit_code, refused.exit_code, asked, done.exit_code), done.output
    assert f"error: {tmp_path / 'c' / 'x.json'}: expected strict JSON" in refused.stderr
    assert "uncertified (none)" == summary["certificate"]
    assert summary["certified"]["judges"][0]["reason"].startswith("none: x.json: expected strict JSON")


def test_the_names_that_run_has_for_its_options_are_taken(tmp_path: Path) -> None:
    """A person can copy them: --judge-vendor, --judge-temperature, --judge-base-url and --judge-api-key-env."""
    with ProbeJudge(right) as server:
        words = ["j", "--judge-base-url", server.url, "--judge-api-key-env", "MINE", "--judge-vendor", "V"]
        words += ["--judge-temperature", "0.5", "--certificates", str(tmp_path)]
        done = CliRunner().invoke(APP, words, env={**NO_KEYS, "MINE": "sk-dummy-key"})
    (certificate,) = read_certificates(tmp_path)

    assert 0 == done.exit_code, done.output
    assert ("V", 0.5) == (certificate.judge["vendor"], certificate.judge["params"]["temperature"])


def test_unreadable_replies_get_no_second_chance(tmp_path: Path) -> None:
    """A judge that failed for prose stays failed when the command is repeated."""
    with ProbeJudge(but(right, lambda question: question.probe.trait == "empty", lambda _: "none")) as server:
        first = _certify(server, tmp_path)
        server.policy = right
        second = _certify(server, tmp_path)

    assert [1, 1] == [first.exit_code, second.exit_code]
    assert "no decision" in second.stdout


def test_an_outage_leaves_no_certificate(tmp_path: Path) -> None:
    """Exit 1 with words, no file; the same command goes on and writes it."""
    with ProbeJudge(but(right, lambda question: question.probe.kind == "equity", lambda _: 500)) as server:
        first = _certify(server, tmp_path)
        written = list(tmp_path.glob("*.json"))
        server.policy = right
        second = _certify(server, tmp_path)

    assert (1, 0) == (first.exit_code, second.exit_code)
    assert [] == written
    assert "no certificate: 32 items have no reply of the judge (32 transport); repeat the command" in first.stderr


def test_a_wrong_key_stops_at_once(tmp_path: Path) -> None:
    """A 401 ends it: one line says what the server said, no certificate is written."""
    with ProbeJudge(lambda _: 401) as server:
        done = _certify(server, tmp_path, "--concurrency", "1")

    assert 1 == done.exit_code
    assert 1 == server.hits
    assert "error: it stopped: judge model org/Judge-A" in done.stderr
    assert not list(tmp_path.glob("*.json"))


def test_json_and_nothing_else(tmp_path: Path) -> None:
    """--json prints the certificate that its file holds."""
    with ProbeJudge(right) as server:
        done = _certify(server, tmp_path, "--suite", "healthbench", "--json", "--grouping", "item")
    (path,) = tmp_path.glob("*.json")

    assert 0 == done.exit_code, done.output
    assert json.loads(path.read_text()) == json.loads(done.stdout)
    assert "healthbench" == json.loads(done.stdout)["suite"]


def test_all_suites_at_once(tmp_path: Path) -> None:
    """--suite all asks every suite's probes and writes a certificate each; one that fails is exit 1."""
    with ProbeJudge(but(right, lambda question: question.probe.kind == "healthbench", obeys)) as server:
        done = _certify(server, tmp_path, "--suite", "all")
    verdicts = {one.whole["suite"]: one.verdict for one in read_certificates(tmp_path)}

    assert 1 == done.exit_code, done.output
    assert {"bedside-bench": "valid", "healthbench": "failed"}.items() <= verdicts.items()


def test_a_judge_of_a_file(tmp_path: Path) -> None:
    """With --judges the name picks one of its judges, with all that the file says of it."""
    with ProbeJudge(right) as server:
        (tmp_path / "jury.toml").write_text(
            f'[[judge]]\nmodel = "a"\n[[judge]]\nmodel = "b"\nbase_url = "{server.url}"\nvendor = "B"\n'
            'temperature = "default"\nid_style = "short"\n'
        )
        done = _certify(server, tmp_path / "c", "--judges", str(tmp_path / "jury.toml"), model="b")
        other = _certify(server, tmp_path / "c", "--judges", str(tmp_path / "jury.toml"), model="x")
    (certificate,) = read_certificates(tmp_path / "c")

    assert 0 == done.exit_code, done.output
    assert ("B", "short") == (certificate.judge["vendor"], certificate.judge["id_style"])
    assert "temperature" not in certificate.judge["params"]
    assert "expected one judge of model x, found 0 among a, b" in other.stderr


def test_a_grader_of_another_wording_is_bound_to_it(tmp_path: Path) -> None:
    """--grader-template: the certificate names the digest of the prompt that was really sent."""
    own = (files("eval.healthbench") / "grader.txt").read_text()
    (tmp_path / "mine.txt").write_text(f"{own}\nBe quick.\n")
    with ProbeJudge(right) as server:
        options = ("--suite", "healthbench", "--grader-template", str(tmp_path / "mine.txt"))
        done = _certify(server, tmp_path / "c", *options)
    (certificate,) = read_certificates(tmp_path / "c")

    assert 0 == done.exit_code, done.output
    assert sha256(f"{own}\nBe quick.\n".encode()).hexdigest() == certificate.whole["prompts"]["template_sha256"]


def test_a_small_context_fails_with_what_it_got_wrong(tmp_path: Path) -> None:
    """A server that refuses the long probe cannot keep a judge from failing on the others."""
    with ProbeJudge(refuses_long) as server:
        done = _certify(server, tmp_path)

    assert 1 == done.exit_code
    assert "failed:" in done.stdout


WRONG: dict[str, tuple[tuple[str, ...], int, str]] = {
    "suite": (("--suite", "x"), 2, "--suite 'x' is not one of"),
    "grouping": (("--grouping", "x"), 2, "--grouping 'x' is not one of"),
    "grouping of all": (("--grouping", "item", "--suite", "all"), 2, "give one --suite"),
    "template": (("--grader-template", "x"), 2, "give --suite healthbench"),
    "file and flag": (("--judges", "x.toml", "--vendor", "v"), 2, "--vendor: --judges x.toml says it"),
    "no such template": (("--suite", "healthbench", "--grader-template", "none.txt"), 1, "none.txt: expected a UTF-8"),
    "too many calls": (("--repeats", "100"), 2, "--repeats"),
    "statements by item": (("--suite", "unsupported-statements", "--grouping", "item"), 1, "drop --grouping item"),
    "no ids": (("--suite", "healthbench", "--id-style", "short"), 1, "its judges are asked by item"),
}


@pytest.mark.parametrize(("options", "code", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_usage_is_told_before_any_call(tmp_path: Path, options: tuple[str, ...], code: int, message: str) -> None:
    """Nothing is asked and nothing written."""
    with ProbeJudge(right) as server:
        done = _certify(server, tmp_path, *options)

    assert code == done.exit_code
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert 0 == server.hits
    assert not list(tmp_path.iterdir())


def test_a_builtin_judge_needs_none(tmp_path: Path) -> None:
    """It says so, and exits 1."""
    with ProbeJudge(right) as server:
        done = _certify(server, tmp_path, model="builtin:verbatim")

    assert 1 == done.exit_code
    assert "a builtin judge needs no certificate" in done.stderr
