import torch

a = torch.tensor([[2.0, 1], [1, 2]])
v = torch.tensor([[1.0], [0]])
for _ in range(30):
    v = a @ v
    v = v / v.norm()
print((a @ v).norm())
