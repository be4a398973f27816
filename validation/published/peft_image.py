#!/usr/bin/env python3
"""The training of an adapter as PEFT's comparison of methods for images runs it, in our own words, with random weights.

    peft_image.py METHOD          a name of peft_image.json; prints {"peak": bytes, "trainable": parameters}

The comparison is method_comparison/image-gen of the repository huggingface/peft (commit 5d602fdb). It trains FLUX.2-klein-base-4B in bf16 with
gradient checkpointing, batches of two images of 512 × 512 whose latents and prompts were computed before, and AdamW. "peak" is its
statistic: the largest reserved memory of the training steps, less what was reserved at the start. Its evaluation every 100 steps
empties the cache, and is not in the statistic; here the cache is emptied after STEPS steps.
"""
import json
import pathlib
import sys

import torch
from diffusers import FlowMatchEulerDiscreteScheduler, Flux2KleinPipeline, Flux2Transformer2DModel
from diffusers.training_utils import compute_density_for_timestep_sampling, compute_loss_weighting_for_sd3
from peft import PeftConfig, get_peft_model
from transformers import AutoConfig, AutoModel

STEPS = 3
SAMPLES = 14  # 20 images, of which two are for validation and four for a test
BATCH, TEXT, WIDTH, CHANNELS, SIDE = 2, 512, 7680, 128, 32
FLUX = {"in_channels": CHANNELS, "num_layers": 5, "num_single_layers": 20, "attention_head_dim": 128, "num_attention_heads": 24,
        "joint_attention_dim": WIDTH, "timestep_guidance_channels": 256, "mlp_ratio": 3.0, "axes_dims_rope": (32, 32, 32, 32),
        "rope_theta": 2000, "guidance_embeds": False}


def adapter(method):
    """The method's configuration, or None if the whole model is trained."""
    configurations = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    settings = configurations[method]
    if settings is None:
        return None
    settings = {**configurations["all"], **settings}
    if settings.get("feedforward_modules") == "all":
        settings["feedforward_modules"] = settings["target_modules"]
    return PeftConfig.from_peft_type(**settings)


def transformer_for(method):
    with torch.device("meta"):
        transformer = Flux2Transformer2DModel(**FLUX).to(torch.bfloat16)
    transformer.to_empty(device="cpu")  # no byte of it is touched
    transformer.enable_gradient_checkpointing()
    transformer = transformer.to("cuda")  # adapters are made there
    configuration = adapter(method)
    if configuration is not None:
        transformer = get_peft_model(transformer, configuration, autocast_adapter_dtype=True)
    transformer.to("cpu")
    torch.cuda.empty_cache()
    return transformer.train()


def caches():
    """What the text encoder and the VAE made of the samples: prompts, positions of their words, latents."""
    return (torch.zeros(SAMPLES, TEXT, WIDTH, dtype=torch.bfloat16, device="cuda"), torch.zeros(SAMPLES, TEXT, 4, dtype=torch.int64, device="cuda"),
            torch.zeros(SAMPLES, CHANNELS, SIDE, SIDE, dtype=torch.bfloat16, device="cuda"))


def sigmas_of(scheduler, indices):
    sigma = scheduler.sigmas[indices].flatten().to(torch.bfloat16)
    return sigma[:, None, None, None].to("cuda")


def train_step(transformer, optimizer, scheduler, samples, indices):
    prompts, text_ids, latents = (cache.index_select(0, indices) for cache in samples)
    image_ids = Flux2KleinPipeline._prepare_latent_ids(latents).to(latents.device)
    noise = torch.randn_like(latents)
    density = compute_density_for_timestep_sampling("none", BATCH, 0.0, 1.0, 1.29)
    chosen = (density * scheduler.config.num_train_timesteps).long()
    timesteps = scheduler.timesteps[chosen].to("cuda")
    sigmas = sigmas_of(scheduler, chosen)
    noisy = Flux2KleinPipeline._pack_latents((1.0 - sigmas) * latents + sigmas * noise)
    optimizer.zero_grad(set_to_none=True)
    predicted = transformer(hidden_states=noisy, timestep=timesteps / 1000, guidance=None, encoder_hidden_states=prompts, txt_ids=text_ids,
                            img_ids=image_ids, return_dict=False)[0]
    predicted = Flux2KleinPipeline._unpack_latents_with_ids(predicted[:, :noisy.size(1)], image_ids)
    weighting = compute_loss_weighting_for_sd3("none", sigmas=sigmas)
    target = noise - latents
    loss = torch.mean((weighting.float() * (predicted.float() - target.float()) ** 2).reshape(target.shape[0], -1), 1).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(transformer.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


def main():
    torch.nn.Linear(1, 1).to("cuda")
    torch.cuda.reset_peak_memory_stats()
    at_start = torch.cuda.max_memory_reserved()
    transformer = transformer_for(sys.argv[1])
    judge = AutoModel.from_config(AutoConfig.for_model("dinov2")).to("cuda").eval()  # compares images in the evaluation; it stays on the card
    optimizer = torch.optim.AdamW(transformer.parameters(), lr=1e-4, weight_decay=1e-4)
    samples = caches()
    transformer.to("cuda")
    torch.cuda.empty_cache()
    scheduler = FlowMatchEulerDiscreteScheduler(num_train_timesteps=1000)
    losses, peak = [], 0
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        for step in range(STEPS):
            indices = torch.tensor([2 * step % SAMPLES, (2 * step + 1) % SAMPLES]).to("cuda")
            losses.append(train_step(transformer, optimizer, scheduler, samples, indices))
            if sys.argv[1] == "adalora":
                transformer.base_model.update_and_allocate(len(losses))
        peak = max(peak, torch.cuda.max_memory_reserved() - at_start)
        torch.cuda.empty_cache()
    trainable = sum(parameter.numel() for parameter in transformer.parameters() if parameter.requires_grad)
    print(json.dumps({"peak": peak, "trainable": trainable}), flush=True)
    del judge


if __name__ == "__main__":
    main()
