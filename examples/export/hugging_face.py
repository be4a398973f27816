import torch
from transformers import AutoConfig, AutoModelForCausalLM

class WithLoss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels, use_cache=False).loss

import sys
config = AutoConfig.from_pretrained(sys.argv[1])   # config.json is enough
with torch.device("meta"):
    model = WithLoss(AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)).train()
    ids = torch.zeros(1, 1024, dtype=torch.long)
torch.export.save(torch.export.export(model, (ids, ids.clone()), strict=False), "llama.pt2")
