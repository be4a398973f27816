"""What the package promises: results as plain objects, errors as exceptions, no PyTorch for files."""

import json
import os
import re
import subprocess
import sys

import pytest

import metaprof

CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 32}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def test_a_configuration_is_profiled(config):
    result = metaprof.profile(config, device="rtx4090", batch=2, sequence=16, precision="bf16")
    assert result.fits
    # wte 100·64, wpe 32·64, two blocks of 12·64² + 13·64, ln_f 2·64
    assert result.parameters == 100 * 64 + 32 * 64 + 2 * (12 * 64**2 + 13 * 64) + 2 * 64
    assert result.peak.allocated <= result.peak.reserved
    assert result.modules[0].path == ""
    assert "transformer.h.0.attn" in [row.path for row in result.modules]
    assert len(result.largest(3)) == 3
    assert result.largest(1)[0].bytes >= result.largest(2)[1].bytes
    page = result._repr_html_()
    assert "<table>" in page and page.endswith("</svg>\n")  # memory over the step
    assert [phase["phase"] for phase in result.phases][:2] == ["setup", "forward"]


def test_what_does_not_fit_is_no_error(config):
    assert not metaprof.profile(config, batch=2, sequence=16, memory="1MiB", context="none").fits
    with pytest.raises(AssertionError, match="DOES NOT FIT h200: needs .*; the peak is in setup"):
        metaprof.assert_fits(config, batch=2, sequence=16, memory="1MiB", context="none")


def test_refusals_are_exceptions_with_the_message(tmp_path):
    with pytest.raises(metaprof.Error, match="no such file"):
        metaprof.profile(tmp_path / "nowhere.pt2")
    bad = tmp_path / "config.json"
    bad.write_text('{"model_type": "warpdrive"}')
    with pytest.raises(metaprof.Error, match="model_type 'warpdrive'"):
        metaprof.profile(bad)
    with pytest.raises(metaprof.Error, match="inputs and loss"):
        metaprof.profile(bad, (1,))


def test_fit_and_sweep(config):
    assert metaprof.fit(config, sequence=16, memory="2GiB").largest > 1
    rows = metaprof.sweep(config, batch=[1, 2], precision=["fp32", "bf16"], sequence=16).rows
    assert {(row["options"]["batch"], row["options"]["precision"]) for row in rows} == {
        (1, "fp32"), (1, "bf16"), (2, "fp32"), (2, "bf16")}


    assert metaprof.fit(config, sequence=16, memory="1MiB", context="none").largest is None


def test_shards_are_one_sweep(config):
    options = {"batch": [1, 2, 3], "precision": ["fp32", "bf16"], "sequence": 16, "steps": 1}
    whole = metaprof.sweep(config, **options)
    shards = [metaprof.sweep(config, shard=f"{i}/4", **options) for i in range(1, 5)]
    assert [len(shard.rows) for shard in shards] == [1, 2, 1, 2]  # from 6·(i - 1)/4 up to 6·i/4
    assert metaprof.Sweep.joined(shards).json == whole.json
    assert "<th>precision</th><th>batch</th>" in whole._repr_html_()


def test_reports_are_compared(config, tmp_path):
    one = metaprof.profile(config, batch=1, sequence=16)
    two = metaprof.profile(config, batch=2, sequence=16)
    assert not metaprof.diff(one, one).different
    changed = metaprof.diff(one, two)
    assert changed.different and "batch: 1 → 2" in changed._repr_html_()
    forward = [row for row in changed.rows if row["figure"] == "flops.forward"]
    assert forward == [{"figure": "flops.forward", "before": one.flops["forward"], "after": two.flops["forward"]}]
    assert metaprof.diff(one.write(str(tmp_path / "one.json")), two).different


def test_an_earlier_report_is_a_baseline(config, tmp_path):
    report = metaprof.profile(config, batch=1, sequence=16).write(str(tmp_path / "accepted.json"))
    assert metaprof.check(config, baseline=report).passed


def test_a_recording_is_checked():
    folder = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "data")
    result = metaprof.check(os.path.join(folder, "models", "resnet18.pt2"),
                            against=[os.path.join(folder, "recordings", "resnet18.json")])
    assert result.passed and result.summary[0]["peak_allocated_error"] == 0
    assert "passed" in result._repr_html_()


def test_tables_for_pandas(config):
    pandas = pytest.importorskip("pandas", reason="pandas is not here")
    modules = metaprof.profile(config, batch=1, sequence=16).to_pandas()
    assert isinstance(modules, pandas.DataFrame) and modules.set_index("path").parameters["transformer.wpe"] == 32 * 64
    rows = metaprof.sweep(config, batch=[1, 2], sequence=16).to_pandas()
    assert list(rows.batch) == [1, 2] and (rows.peak_reserved_bytes > 0).all()


def test_every_option_of_the_command_line_has_a_type():
    from metaprof import _options

    reports = {"help", "version", "json", "csv", "html", "timeline", "chrome-trace", "snapshot", "folded", "metrics", "dot",
               "svg", "compare", "markdown", "per-node", "granularity", "write-trace", "write-program", "depth", "sort", "top",
               "width", "color", "columns", "models", "against", "baseline", "accept", "junit", "sarif", "all"}
    elsewhere = {"loss", "interpreter"}  # a parameter of each function; the Python that calls
    for command, kind in [("profile", _options.ProfileOptions), ("fit", _options.FitOptions), ("sweep", _options.SweepOptions),
                          ("check", _options.CheckOptions), ("run", _options.RunOptions)]:
        text = subprocess.run([metaprof.program_path(), command, "--help"], capture_output=True, text=True).stdout
        known = set(re.findall(r"^  (?:-h,)?--([a-z-]+)", text, re.MULTILINE)) - reports - elsewhere
        assert {name.replace("-", "_") for name in known} == set(kind.__annotations__), command


def test_options_are_those_of_the_command_line():
    from metaprof._program import option_words

    assert option_words({"clip_norm": 1.0, "channels_last": True, "strict": False, "memory": None}) == [
        "--clip-norm", "1.0", "--channels-last"]
    assert option_words({"batch": [1, 2], "set": {"ids": (2, 8)}}) == ["--batch", "1,2", "--set", "ids=2x8"]
    assert option_words({"zero_grad_to_none": False}) == ["--zero-grad-to-none", "false"]
    assert option_words({"zero_grad_to_none": [True, False]}) == ["--zero-grad-to-none", "true,false"]
    assert option_words({"env": {"NAME": "value"}}) == ["--env", "NAME=value"]


# In place of milliseconds, which are the machine's: the modules that an import brings.
def test_import_needs_nothing():
    code = "import sys; before = set(sys.modules); import metaprof; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True, env={
        **os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(metaprof.__file__))}).stdout.split()
    assert [name for name in loaded if name.split(".")[0] != "metaprof"] == []
    assert "metaprof" in loaded


def test_the_command_of_the_package_is_the_program():
    code = "import sys; sys.argv = ['metaprof', '--version']; from metaprof._program import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={
        **os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(metaprof.__file__))})
    assert re.search(r"[0-9]+\.[0-9]+\.[0-9]+", done.stdout), done.stderr


def test_the_package_has_the_version_of_the_program():
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    version = subprocess.run([metaprof.program_path(), "--version"], capture_output=True, text=True).stdout.split()[1]
    assert re.fullmatch(re.escape(version) + r"(\+[0-9a-f]{10})?", metaprof.__version__)
    for file in ("pyproject.toml", os.path.join("python", "pyproject.toml")):
        with open(os.path.join(root, file), encoding="utf-8") as text:
            assert f'\nversion = "{version}"' in text.read(), file


def test_cards_for_a_model_by_its_name():
    report = metaprof.rent("gpt2", device="t4,l4")
    assert [row["device"] for row in report.json["rows"]] == ["t4", "l4"]
    assert str(report).startswith("full fine-tuning from t4 ")


def test_options_of_a_configuration():
    plain, own = (metaprof.profile("gpt2", sequence=64, precision="bf16", loss=loss) for loss in ("plain", "transformers"))
    assert own.peak.allocated > plain.peak.allocated
    epoch = metaprof.profile("gpt2", batch=2, lengths="64:4,128:4")
    assert epoch.json["lengths"]["batches"] == 4
