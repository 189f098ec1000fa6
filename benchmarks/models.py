"""The loads that recording is measured on: a tiny MLP, one of 10 M parameters, a small transformer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn


@dataclass
class Workload:
    """A model, its optimizer and the loss of a batch, which is the same batch every time."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Callable[[], torch.Tensor]


def tiny(device: str) -> Workload:
    """An MLP of 321 parameters on 32 rows."""
    return _mlp([8, 32, 1], batch=32, device=device)


def mlp(device: str) -> Workload:
    """An MLP of 10.9 M parameters on 128 rows."""
    return _mlp([1024, 2048, 2048, 1792, 512], batch=128, device=device)


def gpt(device: str) -> Workload:
    """A causal transformer of 17 M parameters over 4,096 tokens: 5 layers of width 512, 128 positions, batch 8."""
    width, vocabulary, length, batch = 512, 1024, 128, 8
    embedding = nn.Embedding(vocabulary, width)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.ModuleDict(
        {
            "embedding": embedding,
            "blocks": nn.TransformerEncoder(layer, 5, enable_nested_tensor=False),
            "head": nn.Linear(width, vocabulary),
        }
    ).to(device)
    tokens = torch.randint(vocabulary, (batch, length + 1), device=device)
    mask = nn.Transformer.generate_square_subsequent_mask(length, device=torch.device(device))

    def loss() -> torch.Tensor:
        hidden = model["blocks"](model["embedding"](tokens[:, :-1]), mask=mask, is_causal=True)
        return nn.functional.cross_entropy(model["head"](hidden).flatten(0, 1), tokens[:, 1:].flatten())

    return Workload(model, torch.optim.Adam(model.parameters(), lr=1e-4), loss)


def _mlp(widths: list[int], batch: int, device: str) -> Workload:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.Tanh()]
    model = nn.Sequential(*layers[:-1]).to(device)
    x = torch.randn(batch, widths[0], device=device)
    y = torch.randn(batch, widths[-1], device=device)

    def loss() -> torch.Tensor:
        return nn.functional.mse_loss(model(x), y)

    return Workload(model, torch.optim.Adam(model.parameters(), lr=1e-4), loss)


MODELS: dict[str, Callable[[str], Workload]] = {"tiny": tiny, "mlp": mlp, "gpt": gpt}
