import torch

x, y = torch.tensor([-1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
f = (1 - x) ** 2 + 100 * (y - x**2) ** 2
f.backward()
print(x.grad, y.grad)
