"""What most of these programs begin with: a small net, its optimizer, and a step."""
import os
import signal
import sys
import threading
import time

import torch

net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.SGD(net.parameters())


def step():
    loss = net(torch.zeros(4, 64, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
