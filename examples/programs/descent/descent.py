import torch

w = torch.tensor([5.0, -3.0], requires_grad=True)
for _ in range(100):
    loss = ((w - 1) ** 2).sum()
    (slope,) = torch.autograd.grad(loss, w)
    with torch.no_grad():
        w -= 0.1 * slope
print((w * 1000).round() / 1000)
