# The network of main.go in PyTorch.
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TOKENS, LENGTH, WIDTH = 16, 32, 64

def sequences(samples, seed):
    ids = torch.randint(TOKENS, (samples, LENGTH), generator=torch.Generator().manual_seed(seed))
    first = lambda token: torch.where((ids == token).any(1), (ids == token).int().argmax(1), LENGTH)
    return TensorDataset(ids, (first(3) < first(7)).long())

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        block = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, 2, nn.LayerNorm(WIDTH))
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, ids):
        return self.out(self.encoder(self.tokens(ids) + self.positions).mean(1))

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
steps = parser.parse_args().steps
model = Network()
optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
learned = DataLoader(sequences(12800, 1), batch_size=64, shuffle=True)
unseen = DataLoader(sequences(1024, 2), batch_size=256)

made = 0
while made < steps:
    for ids, before in learned:
        loss = nn.functional.cross_entropy(model(ids), before)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        made += 1
        if made % max(steps // 20, 1) == 0:
            model.eval()
            with torch.no_grad():
                hits = sum((model(ids).argmax(1) == before).sum().item() for ids, before in unseen)
            model.train()
            print(f"step {made}: loss {loss.item():.4f}, unseen accuracy {hits / 1024:.4f}")
        if made == steps:
            break
