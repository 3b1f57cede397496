import torch

for x in (torch.tensor([[1.0, 2]]), torch.tensor([[1.0, 2], [3, 4], [5, 6]])):
    print(x.sum(1))
