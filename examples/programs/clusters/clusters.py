import torch

points = torch.tensor([[0, 0], [0, 1], [1, 0], [9, 9], [9, 10], [10, 9.0]])
centres = torch.tensor([[0, 0], [1, 0.0]])
for _ in range(5):
    nearest = torch.cdist(points, centres).argmin(1)
    member = torch.nn.functional.one_hot(nearest, 2).float()
    centres = member.T @ points / member.sum(0).unsqueeze(1)
print((3 * centres).round())
