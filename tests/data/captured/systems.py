"""Systems of equations, inverses, determinants and factors: which library solves them follows from sizes."""
import torch
from torch import nn

SIZES = [(8, 3, 300), (16, 1, 16), (32, 4, 40), (64, 1, 100), (64, 3, 4), (128, 10, 8), (256, 2, 256), (520, 1, 8)]


class Systems(nn.Module):
    def __init__(self, n, matrices, right_sides):
        super().__init__()
        batch = (matrices,) if matrices > 1 else ()
        self.a = nn.Parameter(torch.randn(*batch, n, n))
        self.b = nn.Parameter(torch.randn(*batch, n, right_sides))

    def forward(self):
        lower, upper = torch.linalg.lu(self.a)[1:]
        solved = torch.linalg.solve(self.a, self.b) + torch.linalg.inv(self.a) @ self.b
        solved = solved + torch.linalg.solve_triangular(lower, self.b, upper=False)
        return (solved.sum() + torch.linalg.det(self.a).sum() + torch.linalg.qr(self.a)[0].sum() + upper.sum() +
                torch.linalg.solve(self.a, self.b[..., :1]).sum())


for sizes in SIZES:
    Systems(*sizes).to("cuda")().backward()
