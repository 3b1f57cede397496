import math

import torch

q = torch.zeros(1, 1, 3, 2)
v = torch.arange(6.0).reshape(1, 1, 3, 2)
scores = q @ q.transpose(-1, -2) / math.sqrt(2)
scores = scores.masked_fill(~torch.ones(3, 3, dtype=torch.bool).tril(), -math.inf)
print(scores.softmax(-1) @ v)
