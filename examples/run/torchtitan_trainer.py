"""torchtitan's own trainer on random tokens, with the options of its command line. It needs neither a data set nor a tokenizer:

    metaprof run --world-size 8 --gpus 8 -- python torchtitan_trainer.py --model.name llama3 --model.flavor 8B --training.steps 3

For torchtitan 0.1.0 (PyTorch 2.6) and 0.2.2 (PyTorch 2.11). PLAIN_LOSS=1 leaves the loss uncompiled, as torchtitan did in December 2024.
"""
import os
import sys

import torch
import torchtitan.train as train
from torchtitan.protocols import train_spec
from torchtitan.tools.logging import init_logger

try:
    from torchtitan.config import ConfigManager
except ImportError:  # 0.1.0
    from torchtitan.config_manager import ConfigManager


class RandomTokens:
    def __init__(self, batch, length, words):
        self.shape, self.words = (batch, length + 1), words

    def __iter__(self):
        generator = torch.Generator().manual_seed(0)
        while True:
            tokens = torch.randint(self.words, self.shape, generator=generator)
            yield {"input": tokens[:, :-1]}, tokens[:, 1:]

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Tokenizer:
    bos_id, eos_id, n_words = 0, 1, 128256

    def get_vocab_size(self):
        return 0  # the model keeps its own


def spec_of(name, original=train_spec.get_train_spec):
    spec = original(name)

    def data(dp_world_size, dp_rank, tokenizer, job_config):
        model = getattr(spec, "model_args", None) or getattr(spec, "config", {})
        words = getattr(model.get(job_config.model.flavor), "vocab_size", -1)
        return RandomTokens(job_config.training.local_batch_size, job_config.training.seq_len, words if words > 0 else Tokenizer.n_words)

    replaced = {"build_tokenizer_fn": lambda config: Tokenizer(), "build_dataloader_fn": data}
    if os.environ.get("PLAIN_LOSS"):
        from torchtitan.components.loss import cross_entropy_loss
        replaced["build_loss_fn"] = lambda *_: cross_entropy_loss
    for member, value in replaced.items():
        object.__setattr__(spec, member, value)
    return spec


train.train_spec_module.get_train_spec = spec_of
init_logger()
trainer = train.Trainer(ConfigManager().parse_args(sys.argv[1:]))
trainer.train()
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), flush=True)
trainer.close()
