import torch

print(torch.tensor([[1.0, 2], [3, 4]]).softmax(1))
