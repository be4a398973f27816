"""The hook of pre-commit: a commit that makes a step grow is refused."""

import json
import os
import subprocess
import sys

import pytest

import metaprof

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
HOOKS = os.path.join(ROOT, ".pre-commit-hooks.yaml")


def write_model(folder, layers):
    (folder / "config.json").write_text(json.dumps({
        "model_type": "gpt2", "n_layer": layers, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 32}))


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True, capture_output=True)


def test_a_commit_that_grows_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("pre_commit", reason="pre-commit is not here")
    (tmp_path / "bin").mkdir()
    os.symlink(metaprof.program_path(), tmp_path / "bin" / "metaprof")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "home"))
    hooks, model = tmp_path / "hooks", tmp_path / "model"
    for folder in hooks, model:
        folder.mkdir()
        git(folder, "init", "-q")
    (hooks / ".pre-commit-hooks.yaml").write_text(open(HOOKS).read())
    git(hooks, "add", ".")
    git(hooks, "commit", "-qm", "hooks")
    rev = subprocess.run(["git", "rev-parse", "HEAD"], cwd=hooks, check=True, capture_output=True, text=True).stdout.strip()
    (model / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {rev}\n  hooks:\n  - id: metaprof-check\n    args: [config.json, --baseline, baseline.json]\n")
    write_model(model, 2)
    metaprof.profile(str(model / "config.json"), device="a100").write(str(model / "baseline.json"))

    def hook():
        git(model, "add", ".")
        run = subprocess.run([sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose"], cwd=model, check=False,
                             capture_output=True, text=True)
        return run.returncode, run.stdout

    status, said = hook()
    assert status == 0 and "memory of the training step" in said, said
    write_model(model, 4)
    status, said = hook()
    assert status == 1 and "baseline.json" in said, said
