"""What the package promises: results as plain objects, errors as exceptions, no PyTorch for files."""

import json
import os
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
    assert "<table>" in result._repr_html_()


def test_what_does_not_fit_is_no_error(config):
    assert not metaprof.profile(config, batch=2, sequence=16, memory="1MiB", context="none").fits
    with pytest.raises(AssertionError, match="does not fit"):
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


def test_reports_are_compared(config):
    one = metaprof.profile(config, batch=1, sequence=16)
    two = metaprof.profile(config, batch=2, sequence=16)
    assert not metaprof.diff(one, one).different
    assert metaprof.diff(one, two).different


def test_options_are_those_of_the_command_line():
    from metaprof._program import option_words

    assert option_words({"clip_norm": 1.0, "channels_last": True, "strict": False, "memory": None}) == [
        "--clip-norm", "1.0", "--channels-last"]
    assert option_words({"batch": [1, 2], "set": {"ids": (2, 8)}}) == ["--batch", "1,2", "--set", "ids=2x8"]
    assert option_words({"zero_grad_to_none": False}) == ["--zero-grad-to-none", "false"]


def test_import_needs_no_pytorch():
    code = "import sys, metaprof; assert 'torch' not in sys.modules and 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
