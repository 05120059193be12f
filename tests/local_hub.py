"""local_hub.py - a small, faithful Hugging Face Hub for tests. Standard library only, loopback only.

The unmodified huggingface_hub 2.x client, `datasets`, polars/pandas/duckdb through `hf://` and the `hf` CLI
work against it when HF_ENDPOINT points here and HF_HUB_DISABLE_XET=1 (there is no Xet CAS server).

Storage:   <root>/blobs/<aa>/<sha256>                       every file content, content addressed
           <root>/repos/<type>s/<ns>/<name>/repo.json       visibility, gating, refs (branches, tags, PRs)
           <root>/repos/<type>s/<ns>/<name>/commits/000001.json   one numbered snapshot per commit
Two listeners: the Hub (127.0.0.1), and a "CDN" on 127.0.0.2 (another host: the client must drop its
Authorization header there, and the CDN answers 400 if it does not).  LFS downloads are 302s to the CDN.

As a library:   with LocalHub(tokens={"hf_w": "alice:write"}) as hub: os.environ["HF_ENDPOINT"] = hub.endpoint
As a program:   python local_hub.py --root DIR --port 8799 --token hf_w=alice:write
"""

# ruff: noqa: D101, D102, D103, D105, D107 - one handler a route: the route says what it does
# ruff: noqa: N815, PERF401, SIM905 - do_GET and its like are http.server's names; the rest is plain to read

from __future__ import annotations

import argparse
import base64
import contextlib
import fnmatch
import functools
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

TYPES = ("model", "dataset", "space")
DEFAULT_LFS_GLOBS = (  # what the Hub writes in the initial .gitattributes of a dataset repo (abridged)
    "*.7z *.arrow *.bin *.bz2 *.gz *.h5 *.lz4 *.msgpack *.npy *.npz *.onnx *.parquet *.pickle *.pkl *.pt *.pth"
    " *.safetensors *.tar *.tgz *.wasm *.xz *.zip *.zst *.wav *.mp3 *.flac *.png *.jpg *.jpeg *.webp"
).split()
GITATTRIBUTES = "".join(f"{g} filter=lfs diff=lfs merge=lfs -text\n" for g in DEFAULT_LFS_GLOBS)
LFS_SIZE = 10 * 1024 * 1024  # larger files go to LFS whatever their name
MSG_412 = "The branch was updated since you opened this page. Please refresh and try again."
PRS_A_PAGE = 50
PAGE = 1000  # entries per page of the tree API (the Hub: 1000, or 50 with expand)


class HubError(Exception):
    def __init__(self, status: int, error: str, code: str | None = None, **extra: Any):
        self.status, self.error, self.code, self.extra = status, error, code, extra


def utcnow() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def git_sha1(kind: str, body: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(body)}\0".encode() + body).hexdigest()


def lfs_pointer(sha256: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def git_tree(files: dict[str, dict]) -> tuple[str, dict[str, str]]:
    """Real git tree ids for a flat {path: {oid}} map. Returns (root id, {dir path: tree id})."""
    dirs: dict[str, dict] = {}

    def build(prefix: str, items: list[tuple[list[str], str]]) -> str:
        entries: dict[str, Any] = {}
        for parts, oid in items:
            if len(parts) == 1:
                entries[parts[0]] = oid
            else:
                entries.setdefault(parts[0], []).append((parts[1:], oid))
        raw = []
        for name, value in entries.items():
            if isinstance(value, list):
                raw.append((name + "/", b"40000 " + name.encode() + b"\0", build(f"{prefix}{name}/", value)))
            else:
                raw.append((name, b"100644 " + name.encode() + b"\0", value))
        body = b"".join(head + bytes.fromhex(oid) for _, head, oid in sorted(raw, key=lambda r: r[0].encode()))
        oid = git_sha1("tree", body)
        dirs[prefix.rstrip("/")] = oid  # type: ignore[assignment]
        return oid

    root = build("", [(p.split("/"), f["oid"]) for p, f in files.items()])
    return root, dirs  # type: ignore[return-value]


@dataclass
class Fault:
    """Injected failure for the next `times` matching requests (after skipping `after` of them)."""

    method: str = ".*"
    path: str = ".*"
    status: int = 503
    times: int = 1
    after: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"error":"injected"}'
    mode: str = "status"  # status | drop | truncate | delay | lost_response (do it, then drop the connection)
    delay: float = 0.0
    truncate_at: int = 0
    hits: int = 0


class Repo:
    def __init__(self, store: Store, type_: str, repo_id: str):
        self.store, self.type, self.id = store, type_, repo_id
        self.dir = store.root / "repos" / f"{type_}s" / repo_id
        self.lock = store.locks.setdefault((type_, repo_id), threading.RLock())

    # -- persistence ---------------------------------------------------------
    @property
    def meta(self) -> dict:
        return json.loads((self.dir / "repo.json").read_text())

    def save(self, meta: dict) -> None:
        self.store.write_json(self.dir / "repo.json", meta)

    def commits(self) -> list[dict]:
        return [self.store.read_commit(p) for p in sorted((self.dir / "commits").glob("*.json"))]

    def commit(self, oid: str) -> dict:
        for c in self.commits():
            if c["oid"] == oid:
                return c
        raise KeyError(oid)

    # -- revisions -----------------------------------------------------------
    def resolve(self, revision: str | None) -> dict:
        rev = revision or "main"
        meta = self.meta
        for table in ("branches", "tags", "prs"):
            if rev in meta[table]:
                return self.commit(meta[table][rev])
        for prefix, table in (("refs/heads/", "branches"), ("refs/tags/", "tags")):
            if rev.startswith(prefix) and rev[len(prefix) :] in meta[table]:
                return self.commit(meta[table][rev[len(prefix) :]])
        if re.fullmatch(r"[0-9a-f]{7,40}", rev):
            for c in self.commits():
                if c["oid"].startswith(rev):
                    return c
        raise HubError(404, f"Invalid rev id: {rev}", "RevisionNotFound")

    def history(self, commit: dict) -> list[dict]:
        by_oid = {c["oid"]: c for c in self.commits()}
        out = [commit]
        while out[-1]["parent"]:
            out.append(by_oid[out[-1]["parent"]])
        return out

    # -- writing -------------------------------------------------------------
    def add_commit(
        self,
        ref_table: str,
        ref: str,
        parent: dict | None,
        files: dict,
        title: str,
        message: str,
        author: str,
        meta: dict | None = None,
    ) -> dict:
        n = len(list((self.dir / "commits").glob("*.json"))) + 1
        date = utcnow()
        tree, dirs = git_tree(files)
        stamp = f"{author} <{author}@local> {int(time.time())} +0000"
        body = f"tree {tree}\n" + (f"parent {parent['oid']}\n" if parent else "")
        body += f"author {stamp}\ncommitter {stamp}\n\n{title}\n\n{message}\n#{n}\n"
        commit = {
            "n": n,
            "oid": git_sha1("commit", body.encode()),
            "parent": parent["oid"] if parent else None,
            "tree": tree,
            "dirs": dirs,
            "date": date,
            "author": author,
            "title": title,
            "message": message,
            "files": files,
        }
        self.store.write_json(self.dir / "commits" / f"{n:06d}.json", commit)
        meta = meta or self.meta
        meta[ref_table][ref] = commit["oid"]
        meta["lastModified"] = date
        self.save(meta)
        return commit

    def last_commits(self, commit: dict) -> dict[str, dict]:
        """path -> the commit that last changed it (files and directories), for expand=True."""
        out: dict[str, dict] = {}
        hist = self.history(commit)
        for c, older in zip(hist, [*hist[1:], None], strict=False):
            for path, f in c["files"].items():
                if older is None or older["files"].get(path, {}).get("sha256") != f["sha256"]:
                    parts = path.split("/")
                    for i in range(1, len(parts) + 1):
                        out.setdefault("/".join(parts[:i]), c)
        return out


class Store:
    def __init__(self, root: Path):
        self.root = Path(root)
        self.locks: dict[tuple[str, str], threading.RLock] = {}
        self.lock = threading.RLock()
        self.read: dict[Path, tuple[tuple[int, int], dict]] = {}
        (self.root / "blobs").mkdir(parents=True, exist_ok=True)

    def read_commit(self, path: Path) -> dict:
        """A commit file; kept in memory as long as it is the same file, for there may be many and large ones."""
        stat = path.stat()
        key = (stat.st_ino, stat.st_mtime_ns)
        if self.read.get(path, (None,))[0] != key:
            self.read[path] = (key, json.loads(path.read_text()))
        return self.read[path][1]

    def write_json(self, path: Path, value: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        tmp = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        tmp.write_text(json.dumps(value, indent=1, sort_keys=True))
        tmp.replace(path)

    def blob_path(self, sha256: str) -> Path:
        return self.root / "blobs" / sha256[:2] / sha256

    def put_blob(self, data: bytes) -> str:
        sha = hashlib.sha256(data).hexdigest()
        path = self.blob_path(sha)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            tmp = path.with_name(f".{sha}.{secrets.token_hex(4)}")
            tmp.write_bytes(data)
            tmp.replace(path)
        return sha

    def repo(self, type_: str, repo_id: str) -> Repo:
        repo = Repo(self, type_, repo_id)
        if not (repo.dir / "repo.json").exists():
            raise HubError(404, "Repository not found", "RepoNotFound")
        return repo

    def repos(self, type_: str) -> list[Repo]:
        base = self.root / "repos" / f"{type_}s"
        return [
            Repo(self, type_, f"{p.parent.parent.name}/{p.parent.name}") for p in sorted(base.glob("*/*/repo.json"))
        ]

    def create(self, type_: str, repo_id: str, private: bool, author: str) -> Repo:
        with self.lock:
            repo = Repo(self, type_, repo_id)
            if (repo.dir / "repo.json").exists():
                raise HubError(409, f"You already created this {type_} repo: {repo_id}")
            (repo.dir / "commits").mkdir(parents=True)
            meta = {
                "id": repo_id,
                "private": private,
                "gated": False,
                "access": [],
                "createdAt": utcnow(),
                "branches": {},
                "tags": {},
                "prs": {},
                "tagMessages": {},
                "lastModified": utcnow(),
            }
            data = GITATTRIBUTES.encode()
            files = {
                ".gitattributes": {
                    "sha256": self.put_blob(data),
                    "size": len(data),
                    "oid": git_sha1("blob", data),
                    "lfs": False,
                }
            }
            # repo.json comes last: nobody sees a repository without its main branch.
            repo.add_commit("branches", "main", None, files, "initial commit", "", author, meta)
            return repo


def parse_front_matter(text: str) -> tuple[dict | None, str | None]:
    """(metadata, error) of a README, not to be changed. Uses PyYAML, which huggingface_hub itself depends on."""
    m = re.match(r"^\s*---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(\r?\n|$)", text, re.S)
    return parse_yaml(m.group(1)) if m else (None, None)


@functools.lru_cache(maxsize=1000)
def parse_yaml(text: str) -> tuple[dict | None, str | None]:
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as e:
        return None, f"YAML syntax error: {e}"
    return (data, None) if isinstance(data, dict) else (None, "Metadata must be a mapping")


def validate_card(text: str, repo_type: str) -> tuple[list[str], list[str]]:
    """Errors and warnings. The Hub's full schema is closed; this checks only what its docs state."""
    data, err = parse_front_matter(text)
    if err:
        return [err], []
    if data is None:
        return [], ["empty or missing yaml metadata in repo card"]
    errors, warns = [], []
    if "license" in data and not isinstance(data["license"], (str, list)):
        errors.append('"license" must be a string or an array of strings')
    lang = data.get("language")
    if lang is not None and any(not isinstance(v, str) for v in (lang if isinstance(lang, list) else [lang])):
        errors.append('"language" must only contain ISO codes (quote "no": YAML reads it as false)')
    if repo_type == "dataset":
        for c in data.get("configs") or []:
            if not isinstance(c, dict) or "config_name" not in c:
                errors.append('"configs[].config_name" is required')
    return errors, warns


def card_tags(data: dict, readme: str, files: dict) -> list[str]:
    tags = []
    for key in ("task_categories", "task_ids", "language", "license", "size_categories", "annotations_creators"):
        value = data.get(key)
        for v in value if isinstance(value, list) else [value]:
            if v:
                tags.append(f"{key}:{v}")
    tags += list(data.get("tags") or [])
    if any(p.endswith(".parquet") for p in files):
        tags.append("format:parquet")
    tags += [f"arxiv:{a}" for a in dict.fromkeys(re.findall(r"arxiv\.org/(?:abs|pdf)/(\d{4}\.\d{4,5})", readme))]
    return [*tags, "region:us"]


# huggingface.js packages/tasks/src/eval.ts: the Hub refuses any other evaluation_framework
EVAL_FRAMEWORKS = set(
    "exgentic inspect-ai math-arena mteb olmocr-bench harbor archipelago apex-evals screenspot-pro"
    " swe-bench swe-bench-pro nemo-evaluator yc-bench open-asr-leaderboard mdpbench parsebench"
    " video-mme-v2 claw-eval wildclawbench".split()
)


def validate_eval_yaml(text: str, frameworks: set[str] = EVAL_FRAMEWORKS) -> list[str]:
    """eval.yaml rules as documented in hub-docs docs/hub/eval-results.md."""
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as e:
        return [f"eval.yaml: {e}"]
    errs = []
    if not isinstance(data, dict):
        return ["eval.yaml must be a mapping"]
    for key in ("name", "description", "evaluation_framework"):
        if not isinstance(data.get(key), str):
            errs.append(f"eval.yaml: {key} is required and must be a string")
    if isinstance(data.get("evaluation_framework"), str) and data["evaluation_framework"] not in frameworks:
        errs.append("Invalid input \u2192 at evaluation_framework")
    tasks = data.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        errs.append("eval.yaml: tasks must be a non-empty list")
    ids = [t.get("id") for t in tasks or [] if isinstance(t, dict)]
    if any(not isinstance(i, str) for i in ids) or len(ids) != len(tasks or []):
        errs.append("eval.yaml: every task needs an id")
    if len(set(ids)) != len(ids):
        errs.append("eval.yaml: duplicate task id")
    if data.get("evaluation_framework") == "inspect-ai":
        for t in tasks or []:
            for key in ("field_spec", "solvers", "scorers"):
                if key not in t:
                    errs.append(f"eval.yaml: task {t.get('id')}: {key} is required with inspect-ai")
    return errs


REPO = r"(?P<type>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)"
ROUTES: list[tuple[str, re.Pattern, str, str]] = []  # method, pattern, handler name, permission


def route(method: str, pattern: str, perm: str = "read"):
    def deco(fn: Callable) -> Callable:
        ROUTES.append((method, re.compile(pattern + r"\Z"), fn.__name__, perm))
        return fn

    return deco


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "LocalHub/1"
    disable_nagle_algorithm = True
    hub: LocalHub

    # -- plumbing ------------------------------------------------------------
    def log_message(self, *_: Any) -> None:
        pass

    def read_body(self) -> bytes:
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            out = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                chunk = self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return out
                out += chunk
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(self, status: int, body: bytes | Any = b"", headers: dict | None = None) -> None:
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
        self.status = status
        headers = dict(headers or {})
        self.record()  # before the answer goes out: whoever has it finds its line in the log
        fault = self.fault
        if fault and fault.mode == "lost_response":
            self.abort()
            return
        self.send_response(status)
        headers.setdefault("Content-Length", str(len(body)))
        headers.setdefault("X-Request-Id", self.request_id)
        for k, v in headers.items():
            self.send_header(k, v)
        self.end_headers()
        if self.command != "HEAD":
            if fault and fault.mode == "truncate":
                self.wfile.write(body[: fault.truncate_at])
                self.wfile.flush()
                self.abort()
                return
            self.wfile.write(body)

    def record(self) -> None:
        if not self.recorded:
            self.recorded = True
            self.hub.record(self, self.t0)

    def abort(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def send_error_json(self, e: HubError) -> None:
        h = {"X-Error-Message": e.error.encode("ascii", "replace").decode()}
        if e.code:
            h["X-Error-Code"] = e.code
        h.update(e.extra.get("headers", {}))
        self.send(e.status, {"error": e.error, **e.extra.get("json", {})}, h)

    def handle_any(self) -> None:
        self.request_id = "Root=1-" + secrets.token_hex(8)
        self.status, self.fault, self.recorded, self.t0 = 0, None, False, time.time()
        split = urlsplit(self.path)
        self.raw_path, self.query = split.path, parse_qs(split.query, keep_blank_values=True)
        self.body = self.read_body()
        try:
            self.dispatch()
        except HubError as e:
            self.send_error_json(e)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as e:  # a bug here must look like a server error, with its text
            import traceback

            traceback.print_exc()
            self.send_error_json(HubError(500, f"{type(e).__name__}: {e}"))
        finally:
            self.record()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any

    def dispatch(self) -> None:
        if self.raw_path == "/_faults":
            if self.command == "POST":
                self.hub.faults.append(Fault(**json.loads(self.body)))
            elif self.command == "DELETE":
                self.hub.faults.clear()
            return self.send(200, [f.__dict__ for f in self.hub.faults])
        if self.raw_path == "/_log":
            if self.command == "DELETE":
                self.hub.log.clear()
            return self.send(200, list(self.hub.log))
        fault = self.hub.take_fault(self.command, self.path)
        if fault:
            if fault.delay:
                time.sleep(fault.delay)
            if fault.mode == "status":
                return self.send(
                    fault.status, fault.body.encode(), {"Content-Type": "application/json", **fault.headers}
                )
            if fault.mode == "drop":
                self.status = -1
                return self.abort()
            if fault.mode in ("truncate", "lost_response"):
                self.fault = fault
        method = "GET" if self.command == "HEAD" else self.command
        for m, pattern, name, perm in ROUTES:
            if m == method and (match := pattern.match(self.raw_path)):
                self.args = match.groupdict()
                self.repo: Repo = None  # type: ignore[assignment]
                self.authorize(perm)
                return getattr(self, name)()
        raise HubError(404, f"Not found: {self.command} {self.raw_path}")

    # -- auth ----------------------------------------------------------------
    def authorize(self, perm: str) -> None:
        self.user = self.role = None
        auth = self.headers.get("Authorization")
        if auth:
            token = auth.removeprefix("Bearer ").strip()
            if token not in self.hub.tokens:
                raise HubError(401, "Invalid credentials in Authorization header")
            self.user, self.role = self.hub.tokens[token].split(":")
        if perm == "none":
            return
        if perm in ("write", "user") and not self.user:
            raise HubError(401, "Invalid username or password.")
        if perm == "write" and self.role != "write":
            raise HubError(403, "You don't have the rights to write with this token")
        if "id" in self.args and "type" in self.args:
            t = self.args["type"]
            self.repo = self.hub.store.repo(
                {"models": "model", "datasets": "dataset", "spaces": "space"}[t], self.args["id"]
            )
            meta = self.repo.meta
            if meta["private"] and not self.owns():
                # the Hub hides private repos: 401 for anonymous, 404 for others, both RepoNotFound
                raise HubError(401 if not self.user else 404, "Repository not found", "RepoNotFound")
            if perm == "write" and not self.owns():
                raise HubError(403, f"You don't have the rights to write in {self.repo.id}")
            if perm == "file" and meta["gated"] and not self.owns() and self.user not in meta["access"]:
                raise HubError(
                    401 if not self.user else 403,
                    f"Access to {self.args['type'][:-1]} {self.repo.id} is restricted.",
                    "GatedRepo",
                )

    def owns(self) -> bool:
        ns = self.repo.id.split("/")[0]
        return bool(self.user) and (ns == self.user or ns in self.hub.orgs.get(self.user, []))

    def rev(self) -> str | None:
        return unquote(self.args["rev"]) if self.args.get("rev") else None

    def flag(self, name: str) -> bool:
        return self.query.get(name, ["false"])[-1].lower() in ("1", "true")

    def json_body(self) -> dict:
        return json.loads(self.body or b"{}")

    # -- account and repos ---------------------------------------------------
    @route("GET", "/api/whoami-v2", "user")
    def whoami(self) -> None:
        self.send(
            200,
            {
                "type": "user",
                "id": self.user,
                "name": self.user,
                "fullname": self.user,
                "orgs": [
                    {"type": "org", "id": o, "name": o, "fullname": o, "roleInOrg": "admin"}
                    for o in self.hub.orgs.get(self.user, [])
                ],
                "auth": {"type": "access_token", "accessToken": {"displayName": "local", "role": self.role}},
            },
        )

    @route("POST", "/api/repos/create", "write")
    def repos_create(self) -> None:
        b = self.json_body()
        type_ = b.get("type") or "model"
        ns = b.get("organization") or self.user
        if ns != self.user and ns not in self.hub.orgs.get(self.user, []):
            raise HubError(403, f'You don\'t have the rights to create a {type_} under the namespace "{ns}"')
        repo_id = f"{ns}/{b['name']}"
        url = self.hub.url(type_, repo_id)
        private = b.get("visibility") == "private" or bool(b.get("private"))
        try:
            self.hub.store.create(type_, repo_id, private, self.user)
        except HubError as e:
            e.extra["json"] = {"url": url}
            raise
        self.send(200, {"url": url, "name": repo_id, "id": hashlib.sha1(url.encode()).hexdigest()[:24]})

    @route("DELETE", "/api/repos/delete", "write")
    def repos_delete(self) -> None:
        b = self.json_body()
        self.args = {
            "type": (b.get("type") or "model") + "s",
            "id": f"{b.get('organization') or self.user}/{b['name']}",
        }
        self.authorize("write")
        shutil.rmtree(self.repo.dir)
        self.send(200, b"")

    @route("PUT", f"/api/{REPO}/settings", "write")
    def settings(self) -> None:
        b = self.json_body()
        with self.repo.lock:
            meta = self.repo.meta
            if "visibility" in b:
                meta["private"] = b["visibility"] == "private"
            if "gated" in b:
                meta["gated"] = b["gated"]
            self.repo.save(meta)
        self.send(200, {})

    @route("POST", f"/api/{REPO}/user-access-request/grant", "write")
    def grant(self) -> None:
        with self.repo.lock:
            meta = self.repo.meta
            meta["access"].append(self.json_body()["user"])
            self.repo.save(meta)
        self.send(200, {})

    @route("GET", f"/api/{REPO}/auth-check", "file")
    def auth_check(self) -> None:
        self.send(200, {})

    @route("GET", r"/api/(?P<type>models|datasets|spaces)", "none")
    def list_repos(self) -> None:
        term = self.query.get("search", [""])[0].lower()
        author = self.query.get("author", [None])[0]
        out = []
        for r in self.hub.store.repos(self.args["type"][:-1]):
            self.repo = r
            if (not r.meta["private"] or self.owns()) and term in r.id.lower() and author in (None, r.id.split("/")[0]):
                out.append(self.info(r, r.resolve(None), False))
        self.send(200, out)

    def readme(self, commit: dict) -> tuple[dict, str]:
        f = commit["files"].get("README.md")
        if not f:
            return {}, ""
        text = self.hub.store.blob_path(f["sha256"]).read_text("utf-8", "replace")
        return (parse_front_matter(text)[0] or {}), text

    def info(self, repo: Repo, commit: dict, blobs: bool) -> dict:
        meta = repo.meta
        card, text = self.readme(commit)
        siblings = []
        for path, f in sorted(commit["files"].items()):
            s: dict[str, Any] = {"rfilename": path}
            if blobs:
                s.update(blobId=f["oid"], size=f["size"])
                if f["lfs"]:
                    s["lfs"] = {
                        "sha256": f["sha256"],
                        "size": f["size"],
                        "pointerSize": len(lfs_pointer(f["sha256"], f["size"])),
                    }
            siblings.append(s)
        d = {
            "_id": hashlib.sha1(repo.id.encode()).hexdigest()[:24],
            "id": repo.id,
            "author": repo.id.split("/")[0],
            "sha": commit["oid"],
            "lastModified": commit["date"],
            "createdAt": meta["createdAt"],
            "private": meta["private"],
            "gated": meta["gated"],
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": card_tags(card, text, commit["files"]),
            "siblings": siblings,
            "usedStorage": sum(f["size"] for f in commit["files"].values()),
        }
        if card:
            d["cardData"] = json.loads(json.dumps(card, default=str))
        if repo.type == "model":
            d["modelId"] = repo.id
        return d

    @route("GET", f"/api/{REPO}(?:/revision/(?P<rev>[^/]+))?")
    def repo_info(self) -> None:
        commit = self.repo.resolve(self.rev())
        d = self.info(self.repo, commit, self.flag("blobs"))
        expand = self.query.get("expand", []) + self.query.get("expand[]", [])
        if expand:
            if "evalResults" in expand:
                d["evalResults"] = self.eval_results(commit)
            d = {k: v for k, v in d.items() if k in ("_id", "id", *expand)}
        self.send(200, d)

    @route("GET", f"/api/{REPO}/refs")
    def refs(self) -> None:
        m = self.repo.meta

        def fmt(table: str, prefix: str) -> list[dict]:
            return [
                {"name": n.removeprefix("refs/pr/"), "ref": prefix + n, "targetCommit": o} for n, o in m[table].items()
            ]

        out = {"branches": fmt("branches", "refs/heads/"), "tags": fmt("tags", "refs/tags/"), "converts": []}
        if self.flag("include_prs"):
            out["pullRequests"] = fmt("prs", "")
        self.send(200, out)

    @route("GET", f"/api/{REPO}/commits/(?P<rev>[^/]+)")
    def commits(self) -> None:
        hist = self.repo.history(self.repo.resolve(self.rev()))
        page, limit = int(self.query.get("p", ["0"])[0]), int(self.query.get("limit", ["50"])[0])
        headers = {"X-Total-Count": str(len(hist))}
        if (page + 1) * limit < len(hist):
            q = {k: v[-1] for k, v in self.query.items()} | {"p": page + 1}
            headers["Link"] = f'<{self.hub.endpoint}{self.raw_path}?{urlencode(q)}>; rel="next"'
        self.send(
            200,
            [
                {
                    "id": c["oid"],
                    "title": c["title"],
                    "message": c["message"],
                    "date": c["date"],
                    "authors": [{"user": c["author"]}],
                }
                for c in hist[page * limit : (page + 1) * limit]
            ],
            headers,
        )

    # -- tree ----------------------------------------------------------------
    def entry(self, commit: dict, path: str, last: dict | None) -> dict:
        f = commit["files"].get(path)
        if f:
            e: dict[str, Any] = {"type": "file", "oid": f["oid"], "size": f["size"], "path": path}
            if f["lfs"]:
                e["lfs"] = {
                    "oid": f["sha256"],
                    "size": f["size"],
                    "pointerSize": len(lfs_pointer(f["sha256"], f["size"])),
                }
        else:
            e = {"type": "directory", "oid": commit["dirs"][path], "size": 0, "path": path}
        if last is not None:
            c = last[path]
            e["lastCommit"] = {"id": c["oid"], "title": c["title"], "date": c["date"]}
            if f:
                e["securityFileStatus"] = {"status": "unscanned", "avScan": None, "pickleImportScan": None}
        return e

    @route("GET", f"/api/{REPO}/tree/(?P<rev>[^/]+)(?:/(?P<path>.*))?")
    def tree(self) -> None:
        commit = self.repo.resolve(self.rev())
        path = unquote(self.args.get("path") or "").strip("/")
        recursive, expand = self.flag("recursive"), self.flag("expand")
        prefix = path + "/" if path else ""
        if path and path not in commit["dirs"]:
            raise HubError(404, f"{path} does not exist on {self.rev()}", "EntryNotFound")
        names: set[str] = set()
        for p in commit["files"]:
            if p.startswith(prefix):
                parts = p[len(prefix) :].split("/")
                if recursive:
                    names.update(prefix + "/".join(parts[:i]) for i in range(1, len(parts) + 1))
                else:
                    names.add(prefix + parts[0])
        ordered = sorted(names)
        limit = min(int(self.query.get("limit", [str(self.hub.page or (50 if expand else PAGE))])[0]), PAGE)
        start = int(base64.urlsafe_b64decode(self.query["cursor"][0])) if "cursor" in self.query else 0
        last = self.repo.last_commits(commit) if expand else None
        headers = {"X-Repo-Commit": commit["oid"]}
        if start + limit < len(ordered):
            q = {k: v[-1] for k, v in self.query.items()}
            q["cursor"] = base64.urlsafe_b64encode(str(start + limit).encode()).decode()
            headers["Link"] = f'<{self.hub.endpoint}{self.raw_path}?{urlencode(q)}>; rel="next"'
        self.send(200, [self.entry(commit, p, last) for p in ordered[start : start + limit]], headers)

    @route("POST", f"/api/{REPO}/paths-info/(?P<rev>[^/]+)")
    def paths_info(self) -> None:
        commit = self.repo.resolve(self.rev())
        if "json" in (self.headers.get("Content-Type") or ""):
            b = self.json_body()
            paths, expand = b.get("paths", []), b.get("expand")
        else:
            form = parse_qs(self.body.decode(), keep_blank_values=True)
            paths, expand = form.get("paths", []), form.get("expand", ["false"])[0].lower() == "true"
        last = self.repo.last_commits(commit) if expand else None
        self.send(
            200,
            [
                self.entry(commit, p.rstrip("/"), last)
                for p in paths
                if p.rstrip("/") and (p.rstrip("/") in commit["files"] or p.rstrip("/") in commit["dirs"])
            ],
        )

    # -- files ---------------------------------------------------------------
    @route(
        "GET",
        r"/(?:(?P<type>datasets|spaces)/)?(?P<id>[^/]+/[^/]+)/(?P<kind>resolve|raw)/(?P<rev>(?:refs/[^/]+/)?[^/]+)/(?P<path>.+)",
        "none",
    )
    def resolve_file(self) -> None:
        self.args["type"] = self.args["type"] or "models"
        self.authorize("file")
        commit = self.repo.resolve(self.rev())
        path = unquote(self.args["path"])
        f = commit["files"].get(path)
        if f is None:
            raise HubError(404, "Entry not found", "EntryNotFound", headers={"X-Repo-Commit": commit["oid"]})
        headers = {
            "X-Repo-Commit": commit["oid"],
            "Accept-Ranges": "bytes",
            "Content-Disposition": f"inline; filename*=UTF-8''{quote(path.split('/')[-1])}",
        }
        if f["lfs"] and self.args["kind"] == "raw":
            return self.send(200, lfs_pointer(f["sha256"], f["size"]), {**headers, "ETag": f'"{f["oid"]}"'})
        if f["lfs"]:
            exp = int(time.time()) + 3600
            signature = urlencode({"Expires": exp, "Signature": self.hub.sign(f["sha256"], exp)})
            url = f"{self.hub.cdn_endpoint}/{f['sha256']}?{signature}"
            headers |= {
                "X-Linked-Size": str(f["size"]),
                "X-Linked-ETag": f'"{f["sha256"]}"',
                "Location": url,
                "ETag": f'"{f["oid"]}"',
            }
            return self.send(302, f"Found. Redirecting to {url}".encode(), headers)
        self.send_ranged(self.hub.store.blob_path(f["sha256"]).read_bytes(), {**headers, "ETag": f'"{f["oid"]}"'})
        return None

    def send_ranged(self, data: bytes, headers: dict) -> None:
        spec = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if not spec or spec.group(0) == "bytes=-":
            return self.send(200, data, headers)
        a, b = spec.groups()
        start, end = (
            (int(a), min(int(b or len(data) - 1), len(data) - 1)) if a else (max(len(data) - int(b), 0), len(data) - 1)
        )
        if start >= len(data):
            return self.send(416, b"", {**headers, "Content-Range": f"bytes */{len(data)}"})
        self.send(206, data[start : end + 1], {**headers, "Content-Range": f"bytes {start}-{end}/{len(data)}"})
        return None

    # -- uploads -------------------------------------------------------------
    def is_lfs(self, commit: dict, path: str, size: int) -> bool:
        if size == 0:
            return False
        if size > LFS_SIZE:
            return True
        attr = commit["files"].get(".gitattributes")
        text = self.hub.store.blob_path(attr["sha256"]).read_text() if attr else ""
        globs = [line.split()[0] for line in text.splitlines() if "filter=lfs" in line]
        return any(fnmatch.fnmatch(path, g) or fnmatch.fnmatch(path.split("/")[-1], g) for g in globs)

    @route("POST", f"/api/{REPO}/preupload/(?P<rev>[^/]+)", "write")
    def preupload(self) -> None:
        commit = self.repo.resolve(self.rev())
        b = self.json_body()
        ignore = b.get("gitIgnore")
        if ignore is None and ".gitignore" in commit["files"]:
            ignore = self.hub.store.blob_path(commit["files"][".gitignore"]["sha256"]).read_text()
        globs = [g.strip().rstrip("/") for g in (ignore or "").splitlines() if g.strip() and not g.startswith("#")]
        out = []
        for f in b["files"]:
            lfs = self.is_lfs(commit, f["path"], f["size"])
            e = {
                "path": f["path"],
                "uploadMode": "lfs" if lfs else "regular",
                "shouldIgnore": any(fnmatch.fnmatch(part, g) for part in f["path"].split("/") for g in globs),
            }
            old = commit["files"].get(f["path"])
            if old:
                e["oid"] = old["sha256"] if old["lfs"] else old["oid"]
            out.append(e)
        self.send(200, {"files": out, "commitOid": commit["oid"]})

    @route("POST", r"/(?:(?P<type>datasets|spaces)/)?(?P<id>[^/]+/[^/]+)\.git/info/lfs/objects/batch", "none")
    def lfs_batch(self) -> None:
        self.args["type"] = self.args["type"] or "models"
        b = self.json_body()
        self.authorize("write" if b["operation"] == "upload" else "file")
        objects, multipart = [], False
        for o in b["objects"]:
            oid, size = o["oid"], o["size"]
            entry: dict[str, Any] = {"oid": oid, "size": size, "authenticated": True}
            if not re.fullmatch(r"[0-9a-f]{64}", oid):
                entry = {"oid": oid, "size": size, "error": {"code": 422, "message": "Invalid oid"}}
            elif not self.hub.store.blob_path(oid).exists():  # present already: no actions, nothing to upload
                exp = int(time.time()) + 900
                q = urlencode({"Expires": exp, "Signature": self.hub.sign(oid, exp), "size": size})
                verify = {"href": f"{self.hub.endpoint}/_lfs/verify/{self.repo.type}/{self.repo.id}"}
                if size > self.hub.multipart_at and "multipart" in b.get("transfers", []):
                    multipart, step = True, self.hub.multipart_at
                    n = -(-size // step)
                    up = {
                        "href": f"{self.hub.endpoint}/_lfs/complete/{oid}?{q}",
                        "header": {
                            "chunk_size": str(step),
                            **{str(i): f"{self.hub.cdn_endpoint}/upload/{oid}/{i}?{q}" for i in range(1, n + 1)},
                        },
                    }
                else:
                    up = {"href": f"{self.hub.cdn_endpoint}/upload/{oid}?{q}", "header": {}}
                entry["actions"] = {"upload": up, "verify": verify}
            objects.append(entry)
        self.send(
            200,
            {"transfer": "multipart" if multipart else "basic", "objects": objects},
            {"Content-Type": "application/vnd.git-lfs+json"},
        )

    @route("POST", r"/_lfs/verify/(?P<t>[^/]+)/(?P<rid>.+)", "write")
    def lfs_verify(self) -> None:
        b = self.json_body()
        p = self.hub.store.blob_path(b["oid"])
        if not p.exists() or p.stat().st_size != b["size"]:
            raise HubError(422, f"Object {b['oid']} was not uploaded")
        self.send(200, {})

    @route("POST", r"/_lfs/complete/(?P<oid>[0-9a-f]{64})", "none")
    def lfs_complete(self) -> None:
        parts = self.json_body()["parts"]
        data = b"".join(self.hub.parts.pop((self.args["oid"], p["partNumber"])) for p in parts)
        if hashlib.sha256(data).hexdigest() != self.args["oid"]:
            raise HubError(422, "sha256 mismatch")
        self.hub.store.put_blob(data)
        self.send(200, {"success": True})

    @route("GET", f"/api/{REPO}/discussions")
    def discussions(self) -> None:
        """Pull requests only: nothing else makes discussions here."""
        meta = self.repo.meta
        numbers = sorted((int(ref.rpartition("/")[2]) for ref in meta["prs"]), reverse=True)
        found = [
            {
                "num": number,
                "title": self.repo.commit(meta["prs"][f"refs/pr/{number}"])["title"],
                "author": {"name": self.repo.id.split("/")[0]},
                "createdAt": meta["createdAt"],
                "status": meta.get("prStatus", {}).get(str(number), "open"),
                "isPullRequest": True,
                "repo": {"name": self.repo.id, "type": self.repo.type},
            }
            for number in numbers
        ]
        asked = self.query.get("status", ["all"])[0]
        found = [one for one in found if asked in ("all", one["status"])]
        page = int(self.query.get("p", ["0"])[0]) * PRS_A_PAGE
        self.send(200, {"count": len(found), "start": page, "discussions": found[page : page + PRS_A_PAGE]})

    @route("POST", f"/api/{REPO}/discussions/(?P<num>[0-9]+)/status", "write")
    def discussion_status(self) -> None:
        with self.repo.lock:
            meta = self.repo.meta
            status = self.json_body()["status"]
            meta.setdefault("prStatus", {})[self.args["num"]] = status
            self.repo.save(meta)
        event = {"id": secrets.token_hex(12), "type": "status-change", "createdAt": utcnow()}
        self.send(200, {"newStatus": {**event, "author": {"name": self.user}, "data": {"status": status}}})

    @route("POST", f"/api/{REPO}/commit/(?P<rev>[^/]+)", "write")
    def commit(self) -> None:
        items = [json.loads(line) for line in self.body.splitlines() if line.strip()]
        header = next(i["value"] for i in items if i["key"] == "header")
        rev, pr = self.rev() or "main", self.flag("create_pr")
        store = self.hub.store
        with self.repo.lock:
            meta = self.repo.meta
            table = "prs" if rev in meta["prs"] else "branches"
            if rev not in meta[table]:
                raise HubError(404, f"Invalid rev id: {rev}", "RevisionNotFound")
            head = self.repo.commit(meta[table][rev])
            want = header.get("parentCommit")
            if want and not head["oid"].startswith(want):
                if not pr:
                    raise HubError(412, MSG_412)
                head = self.repo.resolve(want)
            files = dict(head["files"])
            for item in items:
                key, v = item["key"], item["value"]
                if key == "header":
                    continue
                path = v["path"].rstrip("/")
                if key in ("deletedFile", "deletedFolder"):
                    gone = [p for p in files if (p == path if key == "deletedFile" else p.startswith(path + "/"))]
                    if not gone:
                        what = "file" if key == "deletedFile" else "folder"
                        raise HubError(404, f"A {what} with this name doesn't exist: {path}", "EntryNotFound")
                    for p in gone:
                        del files[p]
                    continue
                if ".." in path.split("/") or path.startswith("/") or ".git" in path.split("/"):
                    raise HubError(400, f"Invalid path: {path}")
                if key == "file":
                    data = base64.b64decode(v["content"]) if v.get("encoding") == "base64" else v["content"].encode()
                    files[path] = {
                        "sha256": store.put_blob(data),
                        "size": len(data),
                        "oid": git_sha1("blob", data),
                        "lfs": False,
                    }
                    if path == "README.md":
                        errs, _ = validate_card(data.decode("utf-8", "replace"), self.repo.type)
                        if errs:
                            raise HubError(400, "Invalid metadata in README.md: " + "; ".join(errs))
                    if path == "eval.yaml" and self.repo.type == "dataset":
                        errs = validate_eval_yaml(data.decode(), self.hub.frameworks)
                        if errs:
                            raise HubError(400, "; ".join(errs))
                elif key == "lfsFile":
                    p = store.blob_path(v["oid"])
                    if not p.exists():
                        raise HubError(
                            400, f"LFS pointer of {path} points to an object that was not uploaded: {v['oid']}"
                        )
                    size = p.stat().st_size
                    files[path] = {
                        "sha256": v["oid"],
                        "size": size,
                        "oid": git_sha1("blob", lfs_pointer(v["oid"], size)),
                        "lfs": True,
                    }
                else:
                    raise HubError(400, f"Unknown operation {key}")
            n = len(meta["prs"]) + 1
            ref = (f"refs/pr/{n}", "prs") if pr else (rev, table)
            c = self.repo.add_commit(
                ref[1], ref[0], head, files, header["summary"], header.get("description", ""), self.user
            )
        out = {
            "success": True,
            "commitOid": c["oid"],
            "commitUrl": f"{self.hub.url(self.repo.type, self.repo.id)}/commit/{c['oid']}",
            "hookOutput": "",
        }
        if pr:
            out["pullRequestUrl"] = f"{self.hub.url(self.repo.type, self.repo.id)}/discussions/{n}"
        self.send(200, out)

    # -- refs ----------------------------------------------------------------
    @route("POST", f"/api/{REPO}/tag/(?P<rev>[^/]+)", "write")
    def tag_create(self) -> None:
        b = self.json_body()
        with self.repo.lock:
            c, meta = self.repo.resolve(self.rev()), self.repo.meta
            if b["tag"] in meta["tags"]:
                raise HubError(409, f"Tag reference exists already: {b['tag']}")
            meta["tags"][b["tag"]] = c["oid"]
            meta["tagMessages"][b["tag"]] = b.get("message", "")
            self.repo.save(meta)
        self.send(201, {})

    @route("DELETE", f"/api/{REPO}/tag/(?P<rev>[^/]+)", "write")
    def tag_delete(self) -> None:
        with self.repo.lock:
            meta = self.repo.meta
            if self.rev() not in meta["tags"]:
                raise HubError(404, f"Invalid rev id: {self.rev()}", "RevisionNotFound")
            del meta["tags"][self.rev()]
            self.repo.save(meta)
        self.send(200, {})

    @route("POST", f"/api/{REPO}/branch/(?P<rev>[^/]+)", "write")
    def branch_create(self) -> None:
        with self.repo.lock:
            meta = self.repo.meta
            if self.rev() in meta["branches"]:
                raise HubError(409, f"Reference already exists: {self.rev()}")
            c = self.repo.resolve(self.json_body().get("startingPoint"))
            meta["branches"][self.rev()] = c["oid"]
            self.repo.save(meta)
        self.send(201, {})

    @route("DELETE", f"/api/{REPO}/branch/(?P<rev>[^/]+)", "write")
    def branch_delete(self) -> None:
        with self.repo.lock:
            meta = self.repo.meta
            meta["branches"].pop(self.rev(), None)
            self.repo.save(meta)
        self.send(200, {})

    # -- cards and evaluation results -----------------------------------------
    @route("POST", "/api/validate-yaml", "none")
    def validate_yaml(self) -> None:
        b = self.json_body()
        errors, warns = validate_card(b["content"], b.get("repoType", "model"))
        self.send(
            400 if errors else 200,
            {"errors": [{"message": m} for m in errors], "warnings": [{"message": m} for m in warns]},
        )

    def eval_results(self, commit: dict) -> list[dict]:
        import yaml

        out = []
        for path, f in sorted(commit["files"].items()):
            if re.fullmatch(r"\.eval_results/[^/]+\.ya?ml", path):
                try:
                    for row in yaml.safe_load(self.hub.store.blob_path(f["sha256"]).read_text()):
                        if not {"id", "task_id"} <= set(row["dataset"]) or "value" not in row:
                            raise ValueError("dataset.id, dataset.task_id and value are required")
                        out.append({"filename": path, "verified": False, "data": row})
                except Exception as e:
                    out.append({"filename": path, "error": str(e)})
        return out

    @route("GET", r"/api/(?P<type>datasets)/(?P<id>[^/]+/[^/]+)/leaderboard")
    def leaderboard(self) -> None:
        import yaml

        f = self.repo.resolve(None)["files"].get("eval.yaml")
        if not f:
            raise HubError(404, "This dataset is not a benchmark")
        tasks = [t["id"] for t in yaml.safe_load(self.hub.store.blob_path(f["sha256"]).read_text())["tasks"]]
        task = self.query.get("task_id", tasks)[0]
        rows = []
        for m in self.hub.store.repos("model"):
            if not m.meta["private"]:
                for r in self.eval_results(m.resolve(None)):
                    d = r.get("data", {})
                    if d.get("dataset", {}).get("id") == self.repo.id and d["dataset"]["task_id"] == task:
                        rows.append(
                            {
                                "modelId": m.id,
                                "value": d["value"],
                                "filename": r["filename"],
                                "verified": False,
                                "source": d.get("source"),
                                "notes": d.get("notes"),
                                "author": {"type": "user", "name": m.id.split("/")[0], "fullname": m.id.split("/")[0]},
                            }
                        )
        rows.sort(key=lambda r: -r["value"])
        self.send(200, [{"rank": i + 1, **r} for i, r in enumerate(rows)])


class CdnHandler(Handler):
    """The other origin: signed URLs, no credentials."""

    def dispatch(self) -> None:
        fault = self.hub.take_fault(self.command, "/_cdn" + self.path)
        if fault:
            if fault.delay:
                time.sleep(fault.delay)
            if fault.mode == "status":
                return self.send(fault.status, fault.body.encode(), fault.headers)
            if fault.mode == "drop":
                self.status = -1
                return self.abort()
            if fault.mode in ("truncate", "lost_response"):
                self.fault = fault
        if self.headers.get("Authorization"):
            raise HubError(400, "Authorization header leaked to the CDN")
        parts = self.raw_path.strip("/").split("/")
        oid = parts[1] if parts[0] == "upload" else parts[0]
        exp = int(self.query.get("Expires", ["0"])[0])
        if exp < time.time() or not hmac.compare_digest(self.query.get("Signature", [""])[0], self.hub.sign(oid, exp)):
            raise HubError(403, "Request has expired or is not signed")
        if parts[0] == "upload" and self.command == "PUT":
            if len(parts) == 3:
                self.hub.parts[(oid, int(parts[2]))] = self.body
                return self.send(200, b"", {"ETag": f'"{hashlib.md5(self.body).hexdigest()}"'})
            if hashlib.sha256(self.body).hexdigest() != oid:
                raise HubError(400, "sha256 mismatch")
            self.hub.store.put_blob(self.body)
            return self.send(200, b"")
        if not self.hub.store.blob_path(oid).exists():
            raise HubError(404, "no such object")
        self.send_ranged(self.hub.store.blob_path(oid).read_bytes(), {"ETag": f'"{oid}"', "Accept-Ranges": "bytes"})
        return None


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # many clients at once; the default, 5, makes the kernel refuse some


class LocalHub:
    def __init__(
        self,
        root: str | Path | None = None,
        port: int = 0,
        tokens: dict[str, str] | None = None,
        orgs: dict[str, list[str]] | None = None,
        multipart_at: int = 5 * 1024 * 1024,
        page: int | None = None,
        frameworks: tuple[str, ...] = (),
    ):
        self._tmp = None if root else tempfile.TemporaryDirectory(prefix="localhub-")
        self.store = Store(Path(root or self._tmp.name))  # type: ignore[union-attr]
        self.tokens = (
            tokens if tokens is not None else {"hf_local_write": "tester:write", "hf_local_read": "reader:read"}
        )
        self.orgs = (
            orgs
            if orgs is not None
            else {u.split(":")[0]: ["org"] for u in self.tokens.values() if u.endswith(":write")}
        )
        self.multipart_at, self.page = multipart_at, page
        self.frameworks = EVAL_FRAMEWORKS | set(frameworks)  # add yours: on the real Hub that takes a pull request
        self.secret = secrets.token_bytes(16)
        self.faults: list[Fault] = []
        self.log: list[dict] = []
        self.parts: dict[tuple[str, int], bytes] = {}
        self._lock = threading.Lock()
        self.httpd = self._serve(Handler, port)
        self.endpoint = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        # The CDN must differ by HOST, not only by port: huggingface_hub 1.x compares host names alone and would
        # send it the token. 127.0.0.2 is loopback on Linux; elsewhere fall back to the name "localhost".
        try:
            self.cdnd, cdn_host = self._serve(CdnHandler, 0, "127.0.0.2"), "127.0.0.2"
        except OSError:
            self.cdnd, cdn_host = self._serve(CdnHandler, 0), "localhost"
        self.cdn_endpoint = f"http://{cdn_host}:{self.cdnd.server_address[1]}"

    def _serve(self, handler: type, port: int, host: str = "127.0.0.1") -> ThreadingHTTPServer:
        server = Server((host, port), type(handler.__name__, (handler,), {"hub": self}))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def url(self, type_: str, repo_id: str) -> str:
        return f"{self.endpoint}/{'' if type_ == 'model' else type_ + 's/'}{repo_id}"

    def sign(self, oid: str, exp: int) -> str:
        return hmac.new(self.secret, f"{oid}:{exp}".encode(), "sha256").hexdigest()

    def fault(self, **kw: Any) -> Fault:
        f = Fault(**kw)
        self.faults.append(f)
        return f

    def take_fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for f in self.faults:
                if re.fullmatch(f.method, method) and re.search(f.path, path):
                    f.hits += 1
                    if f.after < f.hits <= f.after + f.times:
                        return f
        return None

    def record(self, h: Handler, t0: float) -> None:
        if h.path in ("/_log", "/_faults"):
            return
        rng = h.headers.get("Range")
        self.log.append(
            {
                "method": h.command,
                "path": ("CDN " if isinstance(h, CdnHandler) else "") + h.path,
                "status": h.status,
                "auth": bool(h.headers.get("Authorization")),
                **({"range": rng} if rng else {}),
                "bytes_in": len(h.body),
                "ms": round((time.time() - t0) * 1e3, 1),
            }
        )

    def env(self, token: str | None = None) -> dict[str, str]:
        """What a client process needs."""
        e = {
            "HF_ENDPOINT": self.endpoint,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        }  # the last: datasets otherwise sends HEAD to s3.amazonaws.com
        return e | ({"HF_TOKEN": token} if token else {})

    def close(self) -> None:
        for s in (self.httpd, self.cdnd):
            s.shutdown()
            s.server_close()
        if self._tmp:
            self._tmp.cleanup()

    def __enter__(self) -> LocalHub:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--root", required=True)
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--token", action="append", default=[], metavar="TOKEN=USER:write|read")
    p.add_argument("--org", action="append", default=[], metavar="USER=ORG")
    p.add_argument("--eval-framework", action="append", default=[], help="accept this name in eval.yaml")
    a = p.parse_args()
    tokens = dict(t.split("=", 1) for t in a.token) or None
    orgs: dict[str, list[str]] = {}
    for o in a.org:
        user, org = o.split("=", 1)
        orgs.setdefault(user, []).append(org)
    hub = LocalHub(a.root, a.port, tokens, orgs or None, frameworks=tuple(a.eval_framework))
    print(json.dumps({"endpoint": hub.endpoint, "cdn": hub.cdn_endpoint, "pid": os.getpid()}), flush=True)  # noqa: T201
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        hub.close()


if __name__ == "__main__":
    main()
