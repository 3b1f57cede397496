# The network of main.go in PyTorch.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def clouds(samples, seed):
    centres = torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(samples) % 10
    x = centres[y] + 1.5 * torch.randn(samples, 64, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, y)

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=500)
learned = DataLoader(clouds(12800, 1), batch_size=128, shuffle=True)
unseen = DataLoader(clouds(2560, 2), batch_size=256)

for epoch in range(5):
    model.train()
    total = 0.0
    for x, y in learned:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in unseen)
    print(f"epoch {epoch + 1}: loss {total / len(learned):.4f}, unseen accuracy {hits / 2560:.4f}")
