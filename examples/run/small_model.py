"""Writes a small Llama with random weights, its tokenizer and a few texts into a folder, for programs that want a model by name.

    small_model.py FOLDER
"""
import json
import pathlib
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder = pathlib.Path(sys.argv[1])
words = [f"word{number}" for number in range(2000)]
vocabulary = {word: number for number, word in enumerate(["<unk>", "<pad>", "</s>", *words])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="</s>").save_pretrained(folder)
LlamaForCausalLM(LlamaConfig(vocab_size=len(vocabulary), hidden_size=512, intermediate_size=1376, num_hidden_layers=6, num_attention_heads=8,
                             num_key_value_heads=4, pad_token_id=1, eos_token_id=2, bos_token_id=2)).save_pretrained(folder)
(folder / "texts").mkdir(exist_ok=True)
with open(folder / "texts" / "train.jsonl", "w", encoding="utf-8") as file:
    for first in range(64):
        file.write(json.dumps({"text": " ".join(words[first:first + 100])}) + "\n")
