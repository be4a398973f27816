"""What a user would write: three training steps of a model of the zoo. python step.py NAME [amp-bf16]"""
import contextlib
import sys

import torch
import zoo

NAME, PRECISION = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "fp32"


def main():
    torch.manual_seed(0)
    module, args, kwargs = zoo.made(NAME)
    module.train().to("cuda")
    optimizer = torch.optim.AdamW(module.parameters())
    args, kwargs = tuple(value.cuda() for value in args), {name: value.cuda() for name, value in kwargs.items()}
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16) if PRECISION == "amp-bf16" else contextlib.nullcontext():
            loss = module(**kwargs).loss if kwargs else torch.nn.functional.cross_entropy(logits(module(args[0])), args[1])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def logits(output):
    return output[0] if isinstance(output, (tuple, list)) else output


if __name__ == "__main__":
    main()
