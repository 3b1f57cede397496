import torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, adjoint):
        return adjoint


x = torch.tensor([0.2, 1.7, -2.4], requires_grad=True)
Round.apply(x).square().sum().backward()
print(x.grad)
