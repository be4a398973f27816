#!/usr/bin/env python3
"""Two training steps of models of public libraries, each in a process of its own. It knows nothing of metaprof.

    train_library_models.py [--on-host] "LIBRARY NAME PRECISION OPTIMIZER [OPTION=VALUE…]"…

A model is an argument, as it stands in a line of library_models.txt, which says what the words mean. Weights and inputs are made on the
device; with --on-host they are made on the host and moved to the device.
"""
import contextlib
import functools
import sys

import torch
import torch.nn.functional as F

from forks import each_in_a_fork

LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_decoder_layers", "num_encoder_layers",
          "num_encoder_blocks", "encoder_layers_num", "depth")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}
OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True),
    "adam-loop": lambda p: torch.optim.Adam(p, lr=1e-4, foreach=False),
    "sgd-momentum": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, weight_decay=1e-4),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
}


def floating(output):
    """The floating tensors in what a model returns."""
    if isinstance(output, torch.Tensor):
        return [output] if output.is_floating_point() and output.requires_grad else []
    if hasattr(output, "values"):
        output = list(output.values())
    if not isinstance(output, (list, tuple)):
        return []
    return [tensor for part in output for tensor in floating(part)]


def loss_of(output):
    """The model's own, or cross entropy of its scores, or how large its results are."""
    if getattr(output, "loss", None) is not None:
        return output.loss
    results = floating(getattr(output, "logits", output))
    if len(results) == 1 and results[0].dim() == 2:
        return F.cross_entropy(results[0], torch.zeros(len(results[0]), dtype=torch.long, device=results[0].device))
    return sum(result.float().pow(2).mean() for result in results)


def images(options, channels=3):
    side = int(options.get("size", 224))
    frames = (int(options["frames"]),) if "frames" in options else ()
    return torch.randn(int(options.get("batch", 4)), channels, *frames, side, side)


def with_few_layers(config):
    """As many layers and experts as a test needs; widths stay as they are."""
    for name in LAYERS:
        if isinstance(getattr(config, name, None), int):
            with contextlib.suppress(AttributeError, NotImplementedError):
                setattr(config, name, min(2, getattr(config, name)))
    for name in EXPERTS:
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, min(32, getattr(config, name)))
    for name in ("text_config", "vision_config", "audio_config", "encoder", "decoder"):
        part = getattr(config, name, None)
        if part is not None and hasattr(part, "to_dict"):
            with_few_layers(part)
    kinds = getattr(config, "layer_types", None)
    if kinds:
        config.layer_types = kinds[:config.num_hidden_layers]
    return config


def of_torchvision(name, options):
    import torchvision
    more = {"weights_backbone": None} if any(part in name for part in ("fcn", "deeplab", "lraspp")) else {}
    model = torchvision.models.get_model(name, weights=None, **more)
    if name in torchvision.models.list_models(torchvision.models.video):
        options.setdefault("frames", 16)
    if name == "inception_v3":
        options.setdefault("size", 299)
    pictures = images(options)
    return model, ((pictures, pictures) if name.startswith("raft") else (pictures,)), {}


def of_timm(name, options):
    import timm
    model = timm.create_model(name, pretrained=False)
    if "size" not in options:
        options["size"] = model.default_cfg["input_size"][-1]
    return model, (images(options),), {}


def of_transformers(name, options):
    import transformers
    head, _, kind = name.partition(":")
    config = with_few_layers(transformers.AutoConfig.for_model(kind))
    config.use_cache = False
    model = getattr(transformers, "AutoModel" + head).from_config(config)
    batch, length = int(options.get("batch", 2)), int(options.get("length", 128))
    words = torch.randint(0, 100, (batch, length))
    if head in ("ForCausalLM", "ForMaskedLM"):
        return model, (), {"input_ids": words, "labels": words}
    if head == "ForSeq2SeqLM":
        return model, (), {"input_ids": words, "labels": words[:, :64].contiguous()}
    if head == "ForSpeechSeq2Seq":
        return model, (), {"input_features": torch.randn(batch, config.num_mel_bins, 3000), "labels": words}
    if head in ("ForSequenceClassification", "ForQuestionAnswering"):
        return model, (), {"input_ids": words}
    if head == "ForImageClassification":
        options.setdefault("size", config.image_size if isinstance(getattr(config, "image_size", None), int) else 224)
        return model, (), {"pixel_values": images(options, config.num_channels), "labels": torch.zeros(int(options.get("batch", 4)), dtype=torch.long)}
    if head == "ForSemanticSegmentation":
        return model, (), {"pixel_values": images(options, 3)}
    if head == "ForAudioClassification":
        return model, (), {"input_values": torch.randn(batch, 16000)}
    if kind in ("clip", "siglip", "altclip"):
        options.setdefault("size", config.vision_config.image_size)
        return model, (), {"input_ids": words[:, :64].contiguous(), "pixel_values": images({**options, "batch": batch})}
    if getattr(model, "main_input_name", "") == "pixel_values":
        options.setdefault("size", config.image_size if isinstance(getattr(config, "image_size", None), int) else 224)
        return model, (images(options),), {}
    return model, (words,), {}


def of_diffusers(name, options):
    import diffusers
    kind = getattr(diffusers, name)
    batch = 2
    random = lambda *sizes: torch.randn(*sizes)  # noqa: E731
    steps = torch.ones(batch, dtype=torch.long)
    if name == "UNet2DModel":
        return kind(sample_size=32, block_out_channels=(64, 128, 128), down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                    up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D")), (random(batch, 3, 32, 32), steps), {}
    if name == "UNet2DConditionModel":
        return kind(sample_size=32, cross_attention_dim=768), (random(batch, 4, 32, 32), steps, random(batch, 77, 768)), {}
    if name == "ControlNetModel":
        return kind(cross_attention_dim=768), (random(batch, 4, 32, 32), steps, random(batch, 77, 768), random(batch, 3, 256, 256)), {}
    if name == "UNet3DConditionModel":
        return kind(cross_attention_dim=256, block_out_channels=(64, 128, 128, 128), attention_head_dim=32), (random(batch, 4, 4, 16, 16), steps, random(batch, 77, 256)), {}
    if name == "UNet1DModel":
        return kind(sample_size=1024, in_channels=2, out_channels=2, extra_in_channels=16), (random(batch, 2, 1024), steps), {}
    if name in ("AutoencoderKL", "VQModel", "AutoencoderTiny"):
        blocks = {} if name == "AutoencoderTiny" else {"block_out_channels": (64, 128), "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
        return kind(**blocks), (random(batch, 3, 64, 64),), {}
    if name == "DiTTransformer2DModel":
        return kind(num_layers=2, sample_size=32), (random(batch, 4, 32, 32),), {"timestep": steps, "class_labels": steps}
    if name == "SD3Transformer2DModel":
        return kind(num_layers=2, sample_size=32), (random(batch, 16, 32, 32), random(batch, 77, 4096), random(batch, 2048), steps), {}
    if name == "PixArtTransformer2DModel":
        return kind(num_layers=2, sample_size=32, caption_channels=512), (random(batch, 4, 32, 32),), {
            "encoder_hidden_states": random(batch, 77, 512), "timestep": steps, "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}
    if name == "FluxTransformer2DModel":
        return kind(num_layers=1, num_single_layers=2), (random(batch, 64, 64),), {
            "encoder_hidden_states": random(batch, 77, 4096), "pooled_projections": random(batch, 768), "timestep": random(batch), "guidance": None,
            "img_ids": torch.zeros(64, 3), "txt_ids": torch.zeros(77, 3)}
    if name == "Transformer2DModel":
        return kind(num_attention_heads=4, attention_head_dim=32, in_channels=64, num_layers=2, cross_attention_dim=128), (random(batch, 64, 16, 16), random(batch, 77, 128)), {}
    if name == "PriorTransformer":
        return kind(num_layers=2), (random(batch, 768), steps, random(batch, 768)), {"encoder_hidden_states": random(batch, 77, 768)}
    raise SystemExit(f"no inputs are known for {name} of diffusers")


DIFFUSERS = ("UNet2DModel", "UNet2DConditionModel", "ControlNetModel", "UNet3DConditionModel", "UNet1DModel", "AutoencoderKL", "VQModel", "AutoencoderTiny",
             "DiTTransformer2DModel", "SD3Transformer2DModel", "PixArtTransformer2DModel", "FluxTransformer2DModel", "Transformer2DModel", "PriorTransformer")
LIBRARIES = {"torchvision": of_torchvision, "timm": of_timm, "transformers": of_transformers, "diffusers": of_diffusers}


def converted(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {name: converted(one, dtype) for name, one in value.items()}
    return value


class Job:
    """What a line says: `model`, its arguments and `optimizer` (of a list of parameters), made on `device`."""

    def __init__(self, line, device):
        library, name, self.precision, optimizer, *rest = line.split()
        self.options = dict(word.split("=", 1) for word in rest)
        with torch.device(device):
            self.model, self.arguments, self.named = LIBRARIES[library](name, self.options)
        self.optimizer = OPTIMIZERS[optimizer]

    def convert(self):
        """To the precision of the line."""
        if self.precision in PRECISIONS:
            self.model.to(PRECISIONS[self.precision])
            self.arguments = tuple(converted(value, PRECISIONS[self.precision]) for value in self.arguments)
            self.named = converted(self.named, PRECISIONS[self.precision])

    def train(self, steps=2):
        """Moves to the device what is not there, and trains."""
        self.model.to("cuda").train()
        optimizer = self.optimizer([p for p in self.model.parameters() if p.requires_grad])
        arguments, named = torch.utils._pytree.tree_map_only(torch.Tensor, lambda each: each.to("cuda"), (self.arguments, self.named))
        for _ in range(steps):
            with torch.autocast("cuda", torch.bfloat16, enabled=self.precision == "amp-bf16"):
                loss = loss_of(self.model(*arguments, **named))
            loss.backward()
            if "clip" in self.options:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), float(self.options["clip"]))
            optimizer.step()
            optimizer.zero_grad()


def train(line, device="cuda"):
    job = Job(line, device)
    job.convert()
    job.train()


def main(words):
    work = functools.partial(train, device="cpu") if words[0] == "--on-host" else train
    lines = [word for word in words if word != "--on-host"]
    for library in {line.split()[0] for line in lines}:
        __import__(library)
    if len(lines) == 1:  # some libraries use the device while they are imported, which no child outlives
        return work(lines[0])
    each_in_a_fork(lines, work)


if __name__ == "__main__":
    main(sys.argv[1:])
