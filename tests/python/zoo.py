"""Models of torchvision, timm and transformers by name, small enough for a test, each with example arguments of a training step.

    torchvision:resnet18    timm:vit_tiny_patch16_224    transformers:LlamaForCausalLM

`drawn(library, count, seed)` gives names by a rule that knows nothing about them.
"""
import random

CLASSES, LABELS = 1000, 10
TEXT = {"vocab_size": 1000, "hidden_size": 64, "d_model": 64, "n_embd": 64, "dim": 64, "embedding_size": 64, "emb_dim": 64, "word_embed_proj_dim": 64,
        "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2,
        "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 128, "d_ff": 128, "n_inner": 128, "hidden_dim": 128, "ffn_dim": 128, "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128, "head_dim": 16, "d_kv": 16, "max_position_embeddings": 128, "n_positions": 128, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2, "decoder_start_token_id": 0, "rotary_dim": 8, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "state_size": 8,
        "image_size": 64, "attention_types": [[["global", "local"], 1]], "moe_intermediate_size": 32}


def drawn(library, count, seed):
    return random.Random(seed).sample(sorted(_names(library)), count)


def _names(library):
    if library == "torchvision":
        import torchvision
        return [f"torchvision:{name}" for name in torchvision.models.list_models(module=torchvision.models)]
    if library == "timm":
        import timm
        return [f"timm:{name}" for name in timm.list_models()]
    from transformers.models.auto import modeling_auto as auto
    found = set()
    for mapping in (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
                    auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES, auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES):
        found.update(name for name in mapping.values() if isinstance(name, str))
    return [f"transformers:{name}" for name in found]


def made(name):
    """(module, args, kwargs) of a training step with the usual loss, or the module's own."""
    library, _, rest = name.partition(":")
    return {"torchvision": _torchvision, "timm": _timm, "transformers": _transformers}[library](rest)


def _images(size, count=2):
    import torch
    return torch.randn(count, 3, size, size), torch.randint(0, CLASSES, (count,))


def _torchvision(name):
    import torchvision
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if name in ("googlenet", "inception_v3"):
        options["aux_logits"] = False
    module = torchvision.models.get_model(name, weights=None, **options)
    return module, _images(299 if name == "inception_v3" else 224 if name.startswith(("vit", "swin", "maxvit", "alexnet", "vgg")) else 96), {}


def _timm(name):
    import timm
    module = timm.create_model(name, pretrained=False, num_classes=CLASSES)
    size = module.default_cfg["input_size"]
    import torch
    return module, (torch.randn(2, *size), torch.randint(0, CLASSES, (2,))), {}


def _transformers(name):
    import torch
    import transformers
    kind = getattr(transformers, name)
    config = kind.config_class()
    for key, value in TEXT.items():
        if hasattr(config, key) and isinstance(getattr(config, key), (int, float, list, type(None))):
            try:
                setattr(config, key, value)
            except Exception:  # noqa: BLE001 - another name of what is set already
                pass
    config.decoder_start_token_id = 0
    layers = getattr(config, "layer_types", None)
    if layers:
        config.layer_types = layers[:2]
    config.num_labels = LABELS
    module = kind(config)
    if "ImageClassification" in name:
        return module, (), {"pixel_values": torch.randn(2, 3, 64, 64), "labels": torch.randint(0, LABELS, (2,))}
    ids = torch.randint(3, 1000, (2, 32))
    if "SequenceClassification" in name:
        return module, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.randint(0, LABELS, (2,))}
    return module, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}
