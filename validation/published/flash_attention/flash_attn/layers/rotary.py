"""Imported by transformers; no program here calls it."""


def apply_rotary_emb(*arguments, **options):
    raise NotImplementedError("rotary embeddings of FlashAttention")
