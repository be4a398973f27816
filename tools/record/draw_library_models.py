#!/usr/bin/env python3
"""Draws models of public libraries, a line each as in library_models.txt, on the standard output.

    draw_library_models.py SEED [--timm 60] [--torchvision 25] [--transformers 62] [--diffusers 13]

The rule: of timm, torchvision and transformers every model has the same chance. Left out are detectors, which take lists of pictures and boxes,
models of more than 1.5 billion parameters, which a host makes slowly, and what cannot be made from its configuration alone. Precisions and optimizers
are dealt out in turn.
"""
import argparse
import itertools
import random
import sys

from train_library_models import DIFFUSERS, OPTIMIZERS, Job

HEADS = {"ForCausalLM": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "ForMaskedLM": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
         "ForSeq2SeqLM": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
         "ForSequenceClassification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
         "ForQuestionAnswering": "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",
         "ForImageClassification": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
         "ForSemanticSegmentation": "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES",
         "ForAudioClassification": "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES"}
PRECISIONS = ("fp32", "bf16", "amp-bf16")
LARGEST = 1.5e9


def of_timm():
    import timm
    return timm.list_models()


def of_torchvision():
    import torchvision
    return [name for name in torchvision.models.list_models() if not any(word in name for word in ("rcnn", "retinanet", "fcos", "ssd", "quantized"))]


def of_transformers():
    from transformers.models.auto import modeling_auto
    return [f"{head}:{kind}" for head, names in HEADS.items() for kind in getattr(modeling_auto, names)]


def is_small(line):
    try:
        try:
            model = Job(line, "meta").model
        except NotImplementedError:  # it reads numbers while it is made
            model = Job(line, "cpu").model
        return sum(each.numel() for each in model.parameters()) <= LARGEST
    except Exception as error:  # of the library, while it makes the model
        print(f"{line}: {type(error).__name__}: {str(error).strip()[:100]!r}", file=sys.stderr)
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    sources = {"timm": (of_timm, 60), "torchvision": (of_torchvision, 25), "transformers": (of_transformers, 62), "diffusers": (lambda: list(DIFFUSERS), 13)}
    for library, (_, count) in sources.items():
        parser.add_argument(f"--{library}", type=int, default=count)
    options = vars(parser.parse_args())
    draw = random.Random(options["seed"])
    precisions, optimizers = itertools.cycle(PRECISIONS), itertools.cycle(OPTIMIZERS)
    for library, (names, _) in sources.items():
        order = sorted(names())
        draw.shuffle(order)
        small = (name for name in order if is_small(f"{library} {name} fp32 adamw"))
        for name in itertools.islice(small, options[library]):
            print(library, name, next(precisions), next(optimizers))


if __name__ == "__main__":
    main()
