#!/usr/bin/env python3
"""torchtitan's own trainer on random tokens, at the commit whose figures were published.

    torchtitan_jobs.py CONFIG [OPTION...]     CONFIG: a training configuration of llama3 (llama3_8b); OPTION: torchtitan's own

torchtitan's source is on PYTHONPATH. Prints {"peak": bytes, "first": bytes}: what torchtitan logs as "memory", the largest reserved memory of
the last step and of the first. Only the data, the tokenizer, profiles and the number of steps are replaced.
"""
import json
import os
import pathlib
import sys

import torch

STEPS = int(os.environ.get("STEPS", "3"))  # memory does not change afterwards
WORDS = 128256


class Tokenizer:
    """That of Llama 3, as far as training asks."""
    bos_id, eos_id, n_words = 128000, 128001, WORDS

    def get_vocab_size(self):
        return WORDS


class Batches:
    """Random tokens and the ones that follow them."""

    def __init__(self, batch, length, names):
        self.shape, self.names = (batch, length + 1), names

    def __iter__(self):
        generator = torch.Generator().manual_seed(0)
        while True:
            tokens = torch.randint(WORDS, self.shape, generator=generator)
            inputs, labels = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
            yield ({"input": inputs} if self.names else inputs), labels

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def watch(monitor, logged):
    """Notes what the trainer asks its memory monitor for."""
    original = monitor.get_peak_stats

    def get_peak_stats(self):
        stats = original(self)
        logged.append(round(stats.max_reserved_gib * 2 ** 30))
        return stats

    monitor.get_peak_stats = get_peak_stats


def set_options(config):
    config.training.steps = STEPS
    config.profiling.enable_profiling = False
    config.metrics.log_freq = 1
    config.metrics.enable_tensorboard = False
    return config


def source():
    return pathlib.Path(next(path for path in sys.path if (pathlib.Path(path) / "torchtitan/models").exists()))


def arguments():
    name = f"{sys.argv[1]}.toml"
    folders = (source() / "train_configs", source() / "torchtitan/models/llama3/train_configs")
    return ["--job.config_file", str(next(folder / name for folder in folders if (folder / name).exists())), *sys.argv[2:]]


def train_of_2024(logged):
    """Until January 2025 train.py lay beside the package."""
    from torchtitan.config_manager import JobConfig
    from torchtitan.metrics import DeviceMemoryMonitor
    sys.path.insert(0, str(source()))
    import train
    watch(DeviceMemoryMonitor, logged)
    train.build_tokenizer = lambda *_: Tokenizer()
    train.build_hf_data_loader = lambda name, path, tokenizer, batch, length, *_: Batches(batch, length, names=False)
    config = JobConfig()
    config.parse_args(arguments())
    train.main(set_options(config))


def train_of_2025(logged):
    from torchtitan import train
    from torchtitan.components.metrics import DeviceMemoryMonitor
    from torchtitan.tools.logging import init_logger
    try:
        from torchtitan.config import ConfigManager
    except ImportError:
        from torchtitan.config_manager import ConfigManager
    watch(DeviceMemoryMonitor, logged)
    spec_of = train.train_spec_module.get_train_spec

    def batches(job_config, **_):
        training = job_config.training
        return Batches(getattr(training, "local_batch_size", None) or training.batch_size, training.seq_len, names=True)

    def spec_with_random_tokens(name):
        spec = spec_of(name)
        object.__setattr__(spec, "build_tokenizer_fn", lambda config: Tokenizer())
        object.__setattr__(spec, "build_dataloader_fn", batches)
        return spec

    train.train_spec_module.get_train_spec = spec_with_random_tokens
    init_logger()
    trainer = train.Trainer(set_options(ConfigManager().parse_args(arguments())))
    trainer.train()


def main():
    logged = []
    (train_of_2024 if (source() / "train.py").exists() else train_of_2025)(logged)
    print(json.dumps({"peak": logged[-1], "first": logged[-STEPS]}), flush=True)


if __name__ == "__main__":
    main()
