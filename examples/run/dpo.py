from datasets import Dataset
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from tokenizers import Tokenizer, models, pre_tokenizers
from trl import DPOConfig, DPOTrainer

words = "a good answer is what people want and a bad one they do not".split()
tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<pad>", "<eos>", "<unk>", *dict.fromkeys(words)])}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
data = Dataset.from_list([{"prompt": "what people want", "chosen": " a good answer" * 60, "rejected": " a bad answer" * 60}] * 32)
config = GPT2Config(n_layer=4, vocab_size=len(tokenizer))
model, reference = GPT2LMHeadModel(config), GPT2LMHeadModel(config)
arguments = DPOConfig(output_dir="out", per_device_train_batch_size=4, max_steps=3, bf16=True, report_to="none", logging_steps=1, max_length=256)
DPOTrainer(model, reference, args=arguments, train_dataset=data, processing_class=tokenizer).train()
