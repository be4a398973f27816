"""The Trainer of Lightning says before its first step what training will take, and stops where that does not fit."""
import lightning.pytorch as pl
import torch

from metaprof.integrations.lightning import MetaprofCallback


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 10))

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


data = torch.utils.data.TensorDataset(torch.randn(64, 256), torch.zeros(64, dtype=torch.int64))
callback = MetaprofCallback(device="rtx4090", stop=True)
trainer = pl.Trainer(max_steps=2, accelerator="cpu", callbacks=[callback], logger=False, enable_checkpointing=False, enable_progress_bar=False,
                     enable_model_summary=False)
trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=32))
print(callback.profile.peak.allocated, "bytes at the peak, in", callback.profile.peak.phase)
