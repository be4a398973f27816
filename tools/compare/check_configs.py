#!/usr/bin/env python3
"""Random configurations of the families that metaprof reads, against the classes of transformers themselves.

    check_configs.py METAPROF [--count 200] [--seed 1] [--only FAMILY]

Each configuration is written as a config.json, built by its class on the meta device, and run forward and backward under the framework's
FLOP counter; parameters and FLOPs of metaprof must be equal. Needs torch and transformers; without them it says so and is done.

The counter sees attention as single products (attn_implementation="eager"), whose backward multiplies twice as much as forward; metaprof's
fused operators multiply more, so their backward is counted as twice their forward here. Experts are counted as one product per token.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile

SMALL = {"vocab_size": [96, 131], "hidden_size": [64, 128], "num_hidden_layers": [1, 2, 5]}
HEADS = {"num_attention_heads": [4, 8], "num_key_value_heads": [None, 1, 2, 4], "head_dim": [None, 8, 24, 32]}
DECODER = {**SMALL, **HEADS, "intermediate_size": [112, 160], "hidden_act": [None, "silu", "gelu", "gelu_new", "relu"],
           "tie_word_embeddings": [None, True, False], "attention_dropout": [None, 0.1], "max_position_embeddings": [None, 64]}
ROPE = {"rope_scaling": [None, {"rope_type": "linear", "factor": 4.0}, {"type": "dynamic", "factor": 2.0},
                         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}],
        "rope_theta": [None, 500000.0]}
WINDOW = {"sliding_window": [None, 16, 48]}
# Classes that read which layers slide; a word for each layer is drawn for a third of their configurations.
HAVE_LAYER_TYPES = ("gemma2", "gemma3_text", "gpt_oss", "ministral", "qwen2", "qwen3")
LAYERS = {"use_sliding_window": [None, True, False], "max_window_layers": [None, 0, 1], **WINDOW}
EXPERTS = {"num_experts_per_tok": [1, 2], "num_local_experts": [4, 6]}
ENCODER = {"vocab_size": [96], "hidden_size": [64, 128], "num_hidden_layers": [1, 3], "num_attention_heads": [4, 8],
           "intermediate_size": [112], "hidden_act": [None, "gelu", "relu", "gelu_new"], "max_position_embeddings": [None, 80],
           "type_vocab_size": [None, 1], "tie_word_embeddings": [None, False], "hidden_dropout_prob": [None, 0.0],
           "num_labels": [None, 5]}
IMAGES = {"hidden_size": [64], "num_hidden_layers": [1, 2], "num_attention_heads": [4], "intermediate_size": [None, 112],
          "image_size": [32, 64], "patch_size": [8, 16], "num_channels": [None, 1], "hidden_act": [None, "gelu_new"]}
GEMMA = {"hidden_act": [None], "hidden_activation": [None, "gelu_pytorch_tanh", "gelu"], "attention_bias": [None, True]}
# Per family: classes, and values of keys, of which one is drawn for each; None leaves the key out.
FAMILIES = {
    "llama": (["LlamaForCausalLM"], {**DECODER, **ROPE, "attention_bias": [None, True], "mlp_bias": [None, True]}),
    "mistral": (["MistralForCausalLM"], {**DECODER, **WINDOW}),
    "ministral": (["MinistralForCausalLM"], {**DECODER, **WINDOW, "num_key_value_heads": [1, 2, 4]}),
    "qwen2": (["Qwen2ForCausalLM"], {**DECODER, **LAYERS, "num_key_value_heads": [1, 2, 4]}),
    "qwen3": (["Qwen3ForCausalLM"], {**DECODER, **LAYERS, "num_key_value_heads": [1, 2, 4], "attention_bias": [None, True]}),
    "gemma": (["GemmaForCausalLM"], {**DECODER, **GEMMA, "num_key_value_heads": [1, 2, 4]}),
    "gemma2": (["Gemma2ForCausalLM"], {**DECODER, **GEMMA, **WINDOW, "num_key_value_heads": [1, 2, 4],
                                       "final_logit_softcapping": [None, 20.0], "query_pre_attn_scalar": [None, 64]}),
    "gemma3_text": (["Gemma3ForCausalLM"], {**DECODER, **GEMMA, **WINDOW, "num_key_value_heads": [1, 2, 4],
                                            "sliding_window_pattern": [None, 2, 3]}),
    "phi3": (["Phi3ForCausalLM"], {**DECODER, **WINDOW, "head_dim": [None], "pad_token_id": [0], "num_key_value_heads": [None, 2],
                                   "resid_pdrop": [None, 0.1]}),
    "phi": (["PhiForCausalLM"], {**DECODER, "head_dim": [None], "num_key_value_heads": [None, 4], "num_attention_heads": [4],
                                 "qk_layernorm": [None, True], "partial_rotary_factor": [None, 0.5, 1.0]}),
    "olmo2": (["Olmo2ForCausalLM"], {**DECODER, "head_dim": [None], "attention_bias": [None, True], "num_key_value_heads": [None, 2],
                                     "pad_token_id": [0]}),
    "starcoder2": (["Starcoder2ForCausalLM"], {**DECODER, **WINDOW, "use_bias": [None, False], "num_key_value_heads": [1, 2, 4],
                                               "head_dim": [None]}),
    "mixtral": (["MixtralForCausalLM"], {**DECODER, **EXPERTS, **WINDOW, "num_key_value_heads": [1, 2, 4]}),
    "qwen3_moe": (["Qwen3MoeForCausalLM"], {**DECODER, **EXPERTS, "num_key_value_heads": [1, 2, 4], "moe_intermediate_size": [48],
                                            "decoder_sparse_step": [None, 2], "mlp_only_layers": [None, [0]],
                                            "norm_topk_prob": [None, True], "use_sliding_window": [None, True], **WINDOW}),
    "gpt_oss": (["GptOssForCausalLM"], {**DECODER, **EXPERTS, **WINDOW, "num_key_value_heads": [1, 2, 4], "hidden_act": [None],
                                        "max_position_embeddings": [None], "head_dim": [8, 32]}),
    "gpt2": (["GPT2LMHeadModel"], {"vocab_size": [96], "n_embd": [64, 128], "n_layer": [1, 3], "n_head": [4, 8], "n_inner": [None, 100],
                                   "activation_function": [None, "relu", "gelu"], "n_positions": [64, 128],
                                   "tie_word_embeddings": [None, False], "scale_attn_by_inverse_layer_idx": [None, True],
                                   "attn_pdrop": [None, 0.0]}),
    "opt": (["OPTForCausalLM"], {"vocab_size": [96], "hidden_size": [64, 128], "num_hidden_layers": [1, 2], "ffn_dim": [100],
                                 "num_attention_heads": [4], "word_embed_proj_dim": [None, 32], "do_layer_norm_before": [None, False],
                                 "enable_bias": [None, False], "activation_function": [None, "gelu"], "tie_word_embeddings": [None, False],
                                 "max_position_embeddings": [64]}),
    "bloom": (["BloomForCausalLM"], {"vocab_size": [96], "hidden_size": [64, 128], "n_layer": [1, 2], "n_head": [4, 8],
                                     "tie_word_embeddings": [None, False], "apply_residual_connection_post_layernorm": [None, True]}),
    "gpt_neox": (["GPTNeoXForCausalLM"], {**SMALL, "num_attention_heads": [4, 8], "intermediate_size": [100], "rotary_pct": [None, 0.5, 1.0],
                                          "use_parallel_residual": [None, False], "attention_bias": [None, False],
                                          "tie_word_embeddings": [None, True], "max_position_embeddings": [64]}),
    "gpt_neo": (["GPTNeoForCausalLM"], {"vocab_size": [96], "hidden_size": [64], "num_layers": [2, 4], "num_heads": [4],
                                        "attention_types": [[[["global", "local"], 1]]], "intermediate_size": [None, 100],
                                        "max_position_embeddings": [64], "window_size": [16, 256]}),
    "bert": (["BertForMaskedLM", "BertForSequenceClassification", "BertForTokenClassification", "BertModel"], ENCODER),
    "roberta": (["RobertaForMaskedLM", "RobertaForSequenceClassification", "RobertaModel"], ENCODER),
    "electra": (["ElectraForPreTraining", "ElectraForMaskedLM"], {**ENCODER, "embedding_size": [None, 48]}),
    "distilbert": (["DistilBertForMaskedLM", "DistilBertForSequenceClassification"],
                   {"vocab_size": [96], "dim": [64], "n_layers": [1, 2], "n_heads": [4], "hidden_dim": [112], "activation": [None, "relu"],
                    "sinusoidal_pos_embds": [None, True], "tie_word_embeddings": [None, False], "num_labels": [None, 4],
                    "max_position_embeddings": [64]}),
    "albert": (["AlbertForMaskedLM", "AlbertForSequenceClassification"],
               {**ENCODER, "embedding_size": [32], "num_hidden_groups": [None, 2], "num_hidden_layers": [2, 4], "inner_group_num": [None, 2]}),
    "vit": (["ViTForImageClassification"], {**IMAGES, "qkv_bias": [None, False], "num_labels": [None, 7]}),
    "dinov2": (["Dinov2Model"], {**IMAGES, "intermediate_size": [None], "mlp_ratio": [None, 2], "qkv_bias": [None, False]}),
    "t5": (["T5ForConditionalGeneration"], {"vocab_size": [96], "d_model": [64], "d_kv": [16, 24], "num_heads": [4], "d_ff": [112],
                                            "num_layers": [1, 2], "num_decoder_layers": [None, 3], "decoder_start_token_id": [0],
                                            "feed_forward_proj": [None, "gated-gelu"], "tie_word_embeddings": [None, True]}),
    "bart": (["BartForConditionalGeneration"], {"vocab_size": [96], "d_model": [64], "encoder_layers": [1, 2], "decoder_layers": [1, 3],
                                                "encoder_attention_heads": [4], "decoder_attention_heads": [4, 8],
                                                "encoder_ffn_dim": [100], "decoder_ffn_dim": [112], "max_position_embeddings": [64],
                                                "scale_embedding": [None, True], "activation_function": [None, "relu"]}),
}


def drawn(family, draw):
    classes, keys = FAMILIES[family]
    config = {"model_type": family, "architectures": [draw.choice(classes)]}
    for key, values in keys.items():
        value = draw.choice(values)
        if value is not None:
            config[key] = value
    if family in ("mistral", "mixtral") and config.get("num_key_value_heads") is None:
        config["num_key_value_heads"] = 4
    if config.pop("num_labels", None):
        config["id2label"] = {str(i): str(i) for i in range(5)}
    if family == "distilbert":
        config.pop("sinusoidal_pos_embds", None)
    if "local" in str(config.get("attention_types")):
        config["attention_types"] = [[["global", "local"], config["num_layers"] // 2]]
    if family in HAVE_LAYER_TYPES and draw.random() < 1 / 3:
        config["layer_types"] = [draw.choice(["sliding_attention", "full_attention"]) for _ in range(config["num_hidden_layers"])]
        config.setdefault("sliding_window", 16)
        if family.startswith("qwen"):
            config["use_sliding_window"] = True
    return config


def counted(config, sizes):
    """Parameters, FLOPs forward and backward of the class itself."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import masking_utils
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    made = transformers.AutoConfig.for_model(**config)
    for key in ("attn_pdrop", "layerdrop"):
        if hasattr(made, key):
            setattr(made, key, 0.0)
    made.use_cache = False
    made._attn_implementation = "eager"
    made._experts_implementation = "batched_mm"
    with torch.device("meta"):
        model = getattr(transformers, config["architectures"][0])(made).to(torch.bfloat16).train()
        inputs = {}
        if "pixels" in sizes:
            inputs["pixel_values"] = torch.empty(sizes["pixels"], dtype=torch.bfloat16)
        else:
            inputs["input_ids"] = torch.zeros(sizes["batch"], sizes["sequence"], dtype=torch.long)
        if "decoder" in sizes:
            inputs["decoder_input_ids"] = torch.zeros(sizes["batch"], sizes["decoder"], dtype=torch.long)
    with FlopCounterMode(display=False) as forward:
        output = model(**inputs)
    tensors = [x for x in output.to_tuple() if isinstance(x, torch.Tensor) and x.is_floating_point()]
    loss = sum(x.float().mean() for x in tensors[:2])
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    return {"parameters": sum(p.numel() for p in model.parameters()), "forward": forward.get_total_flops(),
            "backward": backward.get_total_flops()}


def profiled(metaprof, path, sizes):
    words = [metaprof, "profile", path, "--json", "-", "--precision", "bf16", "--optimizer", "none", "--steps", "1", "--memory", "100TB",
             "--workspaces", "none", "--device", "h100", "--framework", "2.11", "--batch", str(sizes["batch"])]
    if "pixels" not in sizes:
        words += ["--sequence", str(sizes["sequence"])]
    if "decoder" in sizes:
        words += ["--set", f"decoder_input_ids={sizes['batch']}x{sizes['decoder']}"]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    report = json.loads(run.stdout)
    backward = report["flops"]["backward"]
    for op, flops in report["flops"]["by_op"].items():
        if "attention" in op:
            backward += 2 * flops["forward"] - flops["backward"]
    return {"parameters": report["parameters"]["count"], "forward": report["flops"]["forward"], "backward": backward}


def sizes_for(config, draw):
    sizes = {"batch": draw.choice([1, 3])}
    if "patch_size" in config:
        sizes["pixels"] = [sizes["batch"], config.get("num_channels", 3), config["image_size"], config["image_size"]]
    else:
        sizes["sequence"] = draw.choice([24, 48, 64])
    if config["model_type"] in ("t5", "bart"):
        sizes["decoder"] = draw.choice([8, 24])
    return sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metaprof")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    options = parser.parse_args()
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        print(f"check_configs.py: skipped: {error}")
        return 0
    transformers.logging.set_verbosity_error()
    draw = random.Random(options.seed)
    families = [options.only] if options.only else sorted(FAMILIES)
    equal = refused = 0
    for i in range(options.count):
        config = drawn(families[i % len(families)], draw)
        sizes = sizes_for(config, draw)
        try:
            want = counted(config, sizes)
        except Exception as error:  # the class itself refuses such a configuration
            refused += 1
            print("refused by the class:", type(error).__name__, str(error).splitlines()[0][:150], json.dumps(config))
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            try:
                got = profiled(options.metaprof, file.name, sizes)
            except RuntimeError as error:
                got = str(error)
        if got == want:
            equal += 1
        else:
            print("differs:", json.dumps(config), sizes, "expected", want, "got", got)
    print(f"{equal} of {options.count - refused} equal, {refused} refused by the class")
    return 0 if equal == options.count - refused else 1


if __name__ == "__main__":
    sys.exit(main())
