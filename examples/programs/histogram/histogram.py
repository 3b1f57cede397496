import torch

x = torch.tensor([0.1, 0.4, 0.45, 0.9, 0.2])
limits = torch.tensor([0.25, 0.5, 0.75])
print(torch.bincount(torch.searchsorted(limits, x, right=True), minlength=4))
print(x.median())
