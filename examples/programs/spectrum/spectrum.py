import math

import torch

t = torch.arange(64)
c = torch.fft.rfft(torch.sin(2 * math.pi * 5 / 64 * t))
print(c.abs().argmax())
