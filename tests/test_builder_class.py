"""The `datasets` builder class: its configs and rows, its cache, the Hub, and the other versions of datasets."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import datasets
import pytest
from filelock import FileLock
from huggingface_hub import CommitOperationAdd, HfApi

import bedside_bench
from bedside_bench import PANEL_IDS, BedsideBench, case_to_row, dataset_sha256, row_to_case
from tests.local_hub import LocalHub
from tests.trees import case_path, edit_json, make_case, read_json, write_json, write_panel, write_tree

ROOT = Path(bedside_bench.__file__).parent
TOKEN = "hf_alice"
VENVS = os.environ.get("BEDSIDE_VENVS")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a cache of its own."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write a tree of three panels with two cases each."""
    return write_tree(tmp_path / "tree", panels=["drug_safety", "health_equity", "safety_diagnostic"])


def prepared(config: str | None, base_path: Path | str, **options: Any) -> datasets.DatasetDict:
    """Return the splits of a config, through the cache."""
    builder = BedsideBench(config, base_path=str(base_path), **options)
    builder.download_and_prepare()
    return builder.as_dataset()


def written(panel: str, n: int = 2) -> list[dict[str, Any]]:
    """Return the cases that `write_tree` wrote for a panel."""
    return [make_case(panel, number) for number in range(n)]


# -- configs and rows


def test_configs() -> None:
    """There is a config for each panel, and `all`, which is the default."""
    assert list(BedsideBench.builder_configs) == [*PANEL_IDS, "all"]
    assert BedsideBench.DEFAULT_CONFIG_NAME == "all"


def test_features(tree: Path) -> None:
    """The columns are strings and a list of items whose points are 64-bit integers."""
    text = datasets.Value("string")
    item = {"item_id": text, "text": text, "points": datasets.Value("int64")}
    columns = dict.fromkeys(["case_id", "benchmark", "grading_method", "prompt"], text)

    assert datasets.Features({**columns, "rubric_items": [item]}) == prepared("drug_safety", tree)["train"].features


def test_rows_in_manifest_order(tree: Path) -> None:
    """A panel's rows are its cases, exact and in the manifest's order, in the one split `train`."""
    splits = prepared("drug_safety", tree)

    assert list(splits) == ["train"]
    assert [case_to_row(case) for case in written("drug_safety")] == list(splits["train"])


def test_all_in_registry_order(tree: Path) -> None:
    """`all` holds the panels present in registry order; its rows give back the digest of the files."""
    cases = written("drug_safety") + written("health_equity") + written("safety_diagnostic")
    rows = prepared(None, tree)["train"]

    assert [case_to_row(case) for case in cases] == list(rows)
    assert dataset_sha256(cases) == dataset_sha256(row_to_case(row) for row in rows)


def test_sample_cases() -> None:
    """The sample cases load from the folder that holds their panels."""
    rows = prepared("all", ROOT / "data")["train"]
    files = [
        read_json(ROOT / "data" / panel / "cases" / f"{case_id}.json")
        for panel in PANEL_IDS
        for case_id in read_json(ROOT / "data" / panel / "manifest.json")["case_ids"]
    ]

    assert files == [row_to_case(row) for row in rows]


@pytest.mark.parametrize("base", ["tree", "tree/", "tree/data", "./tree"])
def test_base_path_forms(tree: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base is the root, or the folder with the panels, absolute or relative; `data_dir` does as well."""
    monkeypatch.chdir(tree.parent)

    assert prepared("drug_safety", base)["train"].num_rows == 2
    assert prepared("drug_safety", ".", data_dir=base)["train"].num_rows == 2


def test_current_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a base the current folder is read."""
    monkeypatch.chdir(tree)

    assert BedsideBench().base_path == str(tree)


def test_streaming(tree: Path) -> None:
    """Streaming gives the same rows and leaves nothing in the cache."""
    builder = BedsideBench("safety_diagnostic", base_path=str(tree))

    assert [case_to_row(case) for case in written("safety_diagnostic")] == list(builder.as_streaming_dataset("train"))
    assert not Path(builder.cache_dir).exists()


def test_parquet(tree: Path, tmp_path: Path) -> None:
    """The class writes Parquet too, as datasets builders do."""
    BedsideBench("drug_safety", base_path=str(tree)).download_and_prepare(str(tmp_path / "out"), file_format="parquet")
    rows = datasets.Dataset.from_parquet(str(tmp_path / "out" / "*.parquet"), cache_dir=str(tmp_path / "parquet"))

    assert [case_to_row(case) for case in written("drug_safety")] == list(rows)


def test_held_out_split(tree: Path) -> None:
    """Files that no manifest lists, with a split of their own, make the split `test`, by file name."""
    held_out = [make_case("drug_safety", number, split="held_out") for number in (7, 8, 9)]
    for case in held_out:
        write_json(tree / "data" / "drug_safety" / "cases" / f"{case['case_id']}.json", case)
    splits = prepared("all", tree)

    assert list(splits) == ["train", "test"]
    assert splits["train"].num_rows == 6
    assert [case_to_row(case) for case in sorted(held_out, key=lambda case: case["case_id"])] == list(splits["test"])
    assert list(prepared("health_equity", tree)) == ["train"]


def test_only_held_out_cases(tmp_path: Path) -> None:
    """A tree of held-out cases alone, listed in its manifests, is the split `test` alone."""
    write_panel(tmp_path / "tree" / "drug_safety", [make_case(split="held_out")])

    assert list(prepared("drug_safety", tmp_path / "tree")) == ["test"]


def test_pickle(tree: Path) -> None:
    """A builder survives pickling, as data loaders with workers need."""
    builder = pickle.loads(pickle.dumps(BedsideBench("drug_safety", base_path=str(tree))))

    assert len(list(builder.as_streaming_dataset("train"))) == 2


# -- the cache


def test_edited_case_gives_new_rows(tree: Path) -> None:
    """After an edit the next builder gives the new row, and after undoing it the old one."""
    before = list(prepared("drug_safety", tree)["train"])
    original = case_path(tree).read_bytes()
    edit_json(case_path(tree), prompt="What now?")
    after = list(prepared("drug_safety", tree)["train"])
    case_path(tree).write_bytes(original)

    assert "What now?" == after[0]["prompt"]
    assert before[1] == after[1]
    assert before == list(prepared("drug_safety", tree)["train"])


def test_reordered_manifest_gives_new_order(tree: Path) -> None:
    """Another order in the manifest is another dataset."""
    before = list(prepared("drug_safety", tree)["train"])
    manifest = tree / "data" / "drug_safety" / "manifest.json"
    edit_json(manifest, case_ids=read_json(manifest)["case_ids"][::-1])

    assert before[::-1] == list(prepared("drug_safety", tree)["train"])


def test_cache_key(tree: Path) -> None:
    """The cache folder is named by the digest of the config's cases, whatever else sets the hash."""
    cases = written("drug_safety")
    plain = BedsideBench("drug_safety", base_path=str(tree))
    told = BedsideBench("drug_safety", base_path=str(tree), hash="0123456789abcdef0123")

    assert plain.cache_dir.endswith(f"/drug_safety/1.0.0/{dataset_sha256(cases)}")
    assert told.cache_dir.endswith(f"/drug_safety/1.0.0/{dataset_sha256(cases)}-0123456789abcdef")


def test_cached_rows_are_reused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unchanged tree is not written to the cache again, wherever it lies."""
    prepared("drug_safety", tree)
    shutil.copytree(tree, tree.parent / "copy")
    monkeypatch.setattr(BedsideBench, "_generate_examples", None)

    assert prepared("drug_safety", tree.parent / "copy")["train"].num_rows == 2


def test_builder_older_than_the_edit(tree: Path) -> None:
    """A builder made before an edit refuses to serve what its key no longer names; streaming gives the new row."""
    builder = BedsideBench("drug_safety", base_path=str(tree))
    builder.download_and_prepare()
    edit_json(case_path(tree), prompt="What now?")

    with pytest.raises(ValueError, match=r"tree: changed since this builder was made; make a new one$"):
        builder.download_and_prepare()
    assert "What now?" == next(iter(builder.as_streaming_dataset("train")))["prompt"]


def test_edit_while_preparing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit between reading the key and writing the rows stops the build: the cache never holds a mix."""
    builder = BedsideBench("drug_safety", base_path=str(tree))
    prepare = datasets.GeneratorBasedBuilder.download_and_prepare

    def edit_then_prepare(self: Any, *args: Any, **options: Any) -> None:
        edit_json(case_path(tree), prompt="What now?")
        prepare(self, *args, **options)

    monkeypatch.setattr(datasets.GeneratorBasedBuilder, "download_and_prepare", edit_then_prepare)
    with pytest.raises(datasets.exceptions.DatasetGenerationError) as stopped:
        builder.download_and_prepare()

    assert str(stopped.value.__cause__).endswith("json: changed while it was read; start again")
    assert not Path(builder.cache_dir).exists()


# -- what it refuses


@pytest.mark.parametrize(
    ("points", "found"), [(1.5, "1.5"), ("2", '"2"'), (True, "true"), (1.0, "1.0"), (None, "null")], ids=repr
)
def test_points_are_checked_before_datasets_sees_them(tree: Path, points: object, found: str) -> None:
    """Points that datasets would silently turn into integers are refused with file, case and item, in one line."""
    case = make_case()
    case["rubric_items"][1]["points"] = points
    write_json(case_path(tree), case)
    where = f"{case_path(tree)}: case {case['case_id']}: item 1 ({case['rubric_items'][1]['item_id']})"

    with pytest.raises(ValueError) as refused:
        BedsideBench("drug_safety", base_path=str(tree))
    assert f"{where}: points: expected an integer, found {found}" == str(refused.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": 5}, "prompt: expected a string, found 5"),
        ({"prompt": "\ud800"}, "expected strict JSON in UTF-8"),
        ({"benchmark": "health_equity"}, 'benchmark: expected drug_safety, found "health_equity"'),
        ({"case_id": "other"}, 'case_id: expected [0-9a-f]{32}, found "other"'),
        ({"grading_method": "f1_weighted_rubric"}, "grading_method: expected points_rubric, found"),
        ({"rubric_items": {}}, r"rubric_items: expected an array, found \{\}"),
        ({"rubric_items": ["+1"]}, r'item 0 \(None\): expected an object of item_id, text, points, found "\+1"'),
        ({"notes": "x"}, "expected an object of case_id, benchmark, grading_method, prompt, rubric_items, split"),
    ],
)
def test_refused_cases(tree: Path, changes: dict[str, Any], message: str) -> None:
    """A case that no row could hold exactly is refused in one line that names its file."""
    path = case_path(tree)
    path.write_text(json.dumps({**make_case(), **changes}))

    with pytest.raises(ValueError, match=message) as refused:
        BedsideBench("drug_safety", base_path=str(tree))
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "raw", [b'{"case_id": "a", "case_id": "b"}', b"\xef\xbb\xbf{}", b'{"a": "\xff"}', b"", b"[" * 10**6], ids=range(5)
)
def test_refused_files(tree: Path, raw: bytes) -> None:
    """Repeated keys, a byte order mark, other encodings, nothing at all or endless nesting are refused."""
    case_path(tree).write_bytes(raw)

    with pytest.raises(ValueError, match=r"json: expected strict JSON in UTF-8: "):
        BedsideBench("drug_safety", base_path=str(tree))


@pytest.mark.parametrize("ids", [None, ["a", 1], ["a", "a"], ["../../x"], {"a": 1}], ids=repr)
def test_refused_manifests(tree: Path, ids: object) -> None:
    """A manifest lists ids, each once, and none that leads out of its folder."""
    edit_json(tree / "data" / "drug_safety" / "manifest.json", case_ids=ids)

    with pytest.raises(ValueError, match=r"manifest\.json: case_ids: expected an array of case ids, each once$"):
        BedsideBench("drug_safety", base_path=str(tree))


def test_unlisted_public_case(tree: Path) -> None:
    """A public case that no manifest lists would be lost without a word: it is refused."""
    write_json(case_path(tree, number=7), make_case(number=7))

    with pytest.raises(ValueError, match=r"json: expected in manifest\.json, or with a split other than train$"):
        BedsideBench("drug_safety", base_path=str(tree))


def test_missing_files(tree: Path) -> None:
    """A missing case file or panel is named."""
    case_path(tree).unlink()

    with pytest.raises(FileNotFoundError, match=case_path(tree).name):
        BedsideBench("drug_safety", base_path=str(tree))
    with pytest.raises(FileNotFoundError, match="expected a folder landmark_trials, here or in data/; found none"):
        BedsideBench("landmark_trials", base_path=str(tree))


def test_unknown_config() -> None:
    """An unknown config is answered with the names there are."""
    with pytest.raises(ValueError, match=r"BuilderConfig 'drugs' not found. Available: \['drug_safety', .*'all'\]"):
        BedsideBench("drugs")


# -- the Hub and other versions of datasets: in processes of their own, as HF_ENDPOINT is read at import


class Loader:
    """A process that loads what it is told (`load_rows.py`), offline but for the given Hub."""

    def __init__(self, home: Path, hub: LocalHub | None = None, *, python: str = sys.executable) -> None:
        """Start it with a cache at `home`."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "PYTHON"))}
        env |= {"HF_HOME": str(home), "PYTHONPATH": str(ROOT), **(hub.env() if hub else {"HF_HUB_OFFLINE": "1"})}
        command = [python, str(ROOT / "tests" / "load_rows.py")]
        log = home.with_suffix(".log").open("ab")
        self._process = subprocess.Popen(
            command, env=env, cwd=home.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        log.close()

    def __call__(self, how: str, config: str, base_path: str, **options: Any) -> dict[str, Any]:
        """Return what a call gives; an error there is a RuntimeError here."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        call = {"how": how, "config": config, "base_path": base_path, **options}
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in result:
            raise RuntimeError(result["error"])
        return result

    def __enter__(self) -> Self:
        """Keep it running."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.communicate()


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    """Run a Hub on the loopback interface."""
    with LocalHub(tokens={TOKEN: "alice:write"}, orgs={"alice": ["org"]}) as running:
        yield running


@pytest.fixture(scope="module")
def hub_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Name a cache for what comes from the Hub."""
    return tmp_path_factory.mktemp("hub") / "home"


@pytest.fixture(scope="module")
def from_hub(hub: LocalHub, hub_home: Path) -> Iterator[Loader]:
    """Load from the Hub in one process."""
    with Loader(hub_home, hub) as loader:
        yield loader


def push(hub: LocalHub, repo: str, folder: Path, *, private: bool = False) -> str:
    """Commit a folder to a dataset repo and return the commit."""
    api = HfApi(hub.endpoint, token=TOKEN)
    api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    operations = [CommitOperationAdd(path.relative_to(folder).as_posix(), path) for path in files]
    return str(api.create_commit(repo, operations, commit_message="cases", repo_type="dataset").oid)


def rows_of(*panels: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows expected of a written tree."""
    return {"train": [case_to_row(case) for panel in panels for case in written(panel)]}


@pytest.mark.parametrize("how", ["class", "stream"])
def test_hub(hub: LocalHub, from_hub: Loader, tree: Path, how: str) -> None:
    """The class reads the upstream layout from a Hub repo at a commit; the commit names the cache."""
    commit = push(hub, f"org/{how}", tree)
    loaded = from_hub(how, "drug_safety", f"hf://datasets/org/{how}@{commit}")

    assert rows_of("drug_safety") == loaded["rows"]
    assert loaded["cache_dir"].endswith(f"/drug_safety/1.0.0/{commit}")


def test_all_panels_on_the_hub(hub: LocalHub, from_hub: Loader, tree: Path) -> None:
    """`all` holds the panels that the repo has."""
    push(hub, "org/all", tree)

    assert (
        rows_of("drug_safety", "health_equity", "safety_diagnostic")
        == (from_hub("class", "all", "hf://datasets/org/all")["rows"])
    )


@pytest.mark.parametrize("suffix", ["", "@main", "@v1", "@refs%2Fheads%2Fmain", "/", "/data", "@main/data"])
def test_moving_revision_is_resolved(hub: LocalHub, from_hub: Loader, tree: Path, suffix: str) -> None:
    """A branch or tag is resolved to its commit first, with the panels in `data/` or in the folder named."""
    commit = push(hub, "org/moving", tree)
    HfApi(hub.endpoint, token=TOKEN).create_tag("org/moving", tag="v1", repo_type="dataset", exist_ok=True)
    loaded = from_hub("stream", "health_equity", f"hf://datasets/org/moving{suffix}")

    assert rows_of("health_equity") == loaded["rows"]
    assert loaded["base_path"].startswith(f"hf://datasets/org/moving@{commit}")


def test_moved_branch_gives_new_rows(hub: LocalHub, from_hub: Loader, hub_home: Path, tree: Path) -> None:
    """A new commit on the branch gives new rows; the old commit keeps its own, and needs no request once cached."""
    first = push(hub, "org/moved", tree)
    before = from_hub("class", "drug_safety", "hf://datasets/org/moved")
    edit_json(case_path(tree), prompt="What now?")
    second = push(hub, "org/moved", tree)
    after = from_hub("class", "drug_safety", "hf://datasets/org/moved@main")
    hub.log.clear()
    with Loader(hub_home, hub) as fresh:
        again = fresh("class", "drug_safety", f"hf://datasets/org/moved@{first}")

    assert after["cache_dir"].endswith(second)
    assert "What now?" == after["rows"]["train"][0]["prompt"]
    assert before["rows"] == again["rows"] == rows_of("drug_safety")
    assert [] == hub.log


@pytest.mark.parametrize("how", ["class", "stream"])
def test_private_repo(hub: LocalHub, from_hub: Loader, tree: Path, how: str) -> None:
    """A token given to the builder opens a private repo."""
    push(hub, f"org/private-{how}", tree, private=True)
    loaded = from_hub(how, "drug_safety", f"hf://datasets/org/private-{how}", token=TOKEN)

    assert rows_of("drug_safety") == loaded["rows"]


def test_held_out_case_on_the_hub(hub: LocalHub, from_hub: Loader, tree: Path) -> None:
    """A manifest on the Hub that lists a held-out case is refused rather than served as `train`."""
    edit_json(case_path(tree), split="held_out")
    push(hub, "org/held-out", tree)

    with pytest.raises(RuntimeError, match="split: expected train, found held_out"):
        from_hub("class", "drug_safety", "hf://datasets/org/held-out")


def make_venv(version: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of an environment with a version of datasets, made once in BEDSIDE_VENVS or for the session."""
    session = tmp_path_factory.getbasetemp()
    session = session.parent if "PYTEST_XDIST_WORKER" in os.environ else session  # the workers share one
    folder = Path(VENVS) if VENVS else session / "venvs"
    venv = folder / f"datasets-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    python = str(venv / "bin" / "python")
    with FileLock(f"{venv}.lock"):
        if not (venv / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", f"datasets=={version}.*"], check=True)
            (venv / "ready").touch()
    return python


@pytest.fixture(scope="session", params=["3.6", "4.8"])
def other_python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name the Python of an environment with datasets 3 or 4."""
    return make_venv(request.param, tmp_path_factory)


@pytest.fixture(scope="session")
def python_3(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name the Python of an environment with datasets 3."""
    return make_venv("3.6", tmp_path_factory)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["class", "stream"])
def test_class_elsewhere(other_python: str, tree: Path, tmp_path: Path, how: str) -> None:
    """The class gives the same rows in datasets 3 and 4, and new ones after an edit."""
    with Loader(tmp_path / "home", python=other_python) as load:
        before = load(how, "all", str(tree))
        edit_json(case_path(tree), prompt="What now?")
        after = load(how, "all", str(tree))

    assert rows_of("drug_safety", "health_equity", "safety_diagnostic") == before["rows"]
    assert "What now?" == after["rows"]["train"][0]["prompt"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["class", "stream"])
def test_class_elsewhere_on_the_hub(other_python: str, hub: LocalHub, tree: Path, tmp_path: Path, how: str) -> None:
    """The class reads a Hub repo in datasets 3 and 4 as in 5."""
    commit = push(hub, "org/elsewhere", tree)
    with Loader(tmp_path / "home", hub, python=other_python) as load:
        loaded = load(how, "drug_safety", "hf://datasets/org/elsewhere")

    assert rows_of("drug_safety") == loaded["rows"]
    assert loaded["cache_dir"].endswith(commit)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["script", "script-stream"])
def test_loading_script(python_3: str, tree: Path, tmp_path: Path, how: str) -> None:
    """In datasets 3 the module itself, beside the data, is a loading script; an edit gives new rows."""
    script = str(shutil.copy(ROOT / "bedside_bench.py", tree))
    with Loader(tmp_path / "home", python=python_3) as load:
        before = load(how, "drug_safety", script)
        edit_json(case_path(tree), prompt="What now?")
        after = load(how, "drug_safety", script)

    assert rows_of("drug_safety") == before["rows"]
    assert "What now?" == after["rows"]["train"][0]["prompt"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["script", "script-stream"])
def test_loading_script_on_the_hub(python_3: str, hub: LocalHub, tree: Path, tmp_path: Path, how: str) -> None:
    """The script works from a Hub repo of its name too; a new commit gives new rows."""
    shutil.copy(ROOT / "bedside_bench.py", tree)
    with Loader(tmp_path / "home", hub, python=python_3) as load:
        push(hub, "org/bedside_bench", tree)
        before = load(how, "drug_safety", "org/bedside_bench")
        edit_json(case_path(tree), prompt="What now?")
        push(hub, "org/bedside_bench", tree)
        after = load(how, "drug_safety", "org/bedside_bench")

    assert rows_of("drug_safety") == before["rows"]
    assert "What now?" == after["rows"]["train"][0]["prompt"]
