"""From what was observed to the phases of training steps. Knows nothing of torch.

    training_step  setup, forward, backward, optimizer, zero_grad
    activities     what a program does besides: it loads, evaluates, generates and saves
    statistics     the allocator's statistics by phase, while the program keeps its own view of them
"""
