"""The action for pull requests, with a server in GitHub's place."""

import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

import metaprof

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "ci", "pull_request.py")


class GitHub(http.server.BaseHTTPRequestHandler):
    """Comments of one pull request: those of somebody else fill the first page."""

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def sent(self):
        assert self.headers["Authorization"] == "Bearer secret"
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def do_GET(self):  # noqa: N802
        page = int(self.path.rpartition("=")[2])
        self.answer([{"id": id, "body": body} for id, body in self.server.comments.items()][100 * (page - 1):100 * page])

    def do_POST(self):  # noqa: N802
        assert self.path == "/repos/o/r/issues/7/comments"
        self.server.comments[len(self.server.comments)] = self.sent()
        self.answer({})

    def do_PATCH(self):  # noqa: N802
        self.server.comments[int(self.path.removeprefix("/repos/o/r/issues/comments/"))] = self.sent()
        self.answer({})

    def log_message(self, *_):
        pass


@pytest.fixture
def github():
    server = http.server.HTTPServer(("127.0.0.1", 0), GitHub)
    server.comments = dict.fromkeys(range(100), "looks good")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def write_model(folder, layers):
    (folder / "config.json").write_text(json.dumps({
        "model_type": "gpt2", "n_layer": layers, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 32}))


def run(folder, github, options, **variables):
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    given = {"METAPROF": metaprof.program_path(), "MODEL": "config.json", "OPTIONS": options, "COMMENT": "true", "GITHUB_TOKEN": "secret",
             "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}", "GITHUB_REPOSITORY": "o/r", "GITHUB_EVENT_PATH": str(event),
             "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "GITHUB_OUTPUT": str(folder / "output")}
    return subprocess.run([sys.executable, SCRIPT], cwd=folder, env={**os.environ, **given, **variables}, check=False).returncode


def test_a_pull_request_has_one_comment_that_is_the_last_run(tmp_path, github):
    write_model(tmp_path, 2)
    assert run(tmp_path, github, "--device a100") == 0
    (tmp_path / "metaprof.json").rename(tmp_path / "baseline.json")
    own = github.comments[100]
    assert own.startswith("<!-- metaprof -->\n## ") and " on NVIDIA A100" in own and "✅ **FITS a100: needs " in own

    write_model(tmp_path, 3)
    assert run(tmp_path, github, "--device a100", BASELINE="baseline.json") == 1
    assert len(github.comments) == 101, "the comment was replaced"
    changed = github.comments[100]
    assert "| allocated | " in changed and "What backward keeps, by module" in changed and "| transformer.h.2 | - | " in changed
    assert "❌ More than 2% above the baseline" in changed
    assert changed.removeprefix("<!-- metaprof -->\n") in (tmp_path / "summary.md").read_text()


def test_nothing_that_grows_is_no_finding(tmp_path, github):
    write_model(tmp_path, 2)
    assert run(tmp_path, github, "", COMMENT="false") == 0
    (tmp_path / "metaprof.json").rename(tmp_path / "baseline.json")
    assert run(tmp_path, github, "", BASELINE="baseline.json") == 0
    assert "No figure differs." in github.comments[100]
    assert (tmp_path / "output").read_text() == "report=metaprof.json\n" * 2


def test_what_cannot_be_read_is_an_error(tmp_path, github):
    write_model(tmp_path, 2)
    assert run(tmp_path, github, "--device nothing") == 2
    assert len(github.comments) == 100
