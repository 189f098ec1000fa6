"""What the corpus trains: three small models, each with data that is made on the spot and can be learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

Batch = tuple[Tensor, Tensor]

LENGTH, LONGEST, LETTERS = 16, 128, 16


@dataclass(frozen=True)
class Task:
    """A model and its data: `draw` gives one batch, `losses` the unreduced losses of it.

    `rates` are learning rates that train it, by optimizer; `hardness` of `draw` is 1 for the data it is trained on and
    more where a curriculum makes them noisier.
    """

    model: nn.Module
    draw: Callable[[Generator, int, float], Batch]
    losses: Callable[[Tensor, Tensor], Tensor]
    rates: Mapping[str, float]


def mlp() -> Task:
    """Regression of a smooth function of 16 inputs, with noise."""
    return _regression(nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)))


class WithExpert(nn.Module):
    """A small trunk and an expert four times its size, which `gate` keeps out until it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
        self.expert = nn.Sequential(nn.Linear(16, 128), nn.GELU(), nn.Linear(128, 1))
        self.gate = 0.0

    def forward(self, x: Tensor) -> Tensor:
        return self.trunk(x) + self.gate * self.expert(x)


class Gains(nn.Module):
    """A frozen MLP of which only the gains of its hidden units are tuned, in bf16 and from 1."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.GELU()).requires_grad_(False)
        self.gains = nn.Parameter(torch.ones(64, dtype=torch.bfloat16))
        self.head = nn.Linear(64, 1).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x) * self.gains)


def cnn() -> Task:
    """Four classes of 8 x 8 images behind two convolutions with batch norm."""
    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 4)),
    )
    shapes = torch.randn(4, 1, 8, 8)

    def draw(made_by: Generator, size: int, hardness: float) -> Batch:
        y = torch.randint(4, (size,), generator=made_by)
        return shapes[y] + 1.4 * hardness * torch.randn(size, 1, 8, 8, generator=made_by), y

    return Task(model, draw, _cross_entropy, {"Adam": 3e-3, "AdamW": 3e-3, "SGD": 3e-2})


class Transformer(nn.Module):
    """One causal block over characters, with learned positions for lengths up to LONGEST."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.letters, self.positions = nn.Embedding(LETTERS, width), nn.Embedding(LONGEST, width)
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Linear(width, LETTERS)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.letters(x) + self.positions.weight[: x.shape[1]]
        query, key, value = self.mix(self.norm(hidden)).chunk(3, -1)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).masked_fill(future, float("-inf"))
        hidden = hidden + scores.softmax(-1) @ value
        return self.head(hidden + self.feed(hidden))


def char() -> Task:
    """The next letter of a text in which each letter has a few likely followers."""
    text = _text(torch.softmax(3.0 * torch.randn(LETTERS, LETTERS), -1), streams=128, length=32 * LENGTH)
    window = torch.arange(LENGTH + 1)

    def draw(made_by: Generator, size: int, hardness: float) -> Batch:
        stream = torch.randint(len(text), (size, 1), generator=made_by)
        start = torch.randint(text.shape[1] - LENGTH, (size, 1), generator=made_by)
        whole = text[stream, start + window]
        if hardness > 1.0:
            unforeseen = torch.rand(whole.shape, generator=made_by) < 0.3 * (hardness - 1.0)
            whole = torch.where(unforeseen, torch.randint(LETTERS, whole.shape, generator=made_by), whole)
        return whole[:, :-1], whole[:, 1:]

    return Task(Transformer(), draw, _cross_entropy, {"Adam": 3e-3, "AdamW": 3e-3, "SGD": 1e-1})


def _text(likely: Tensor, streams: int, length: int) -> Tensor:
    """Letters [streams, length], each drawn by how likely it follows the one before."""
    reach = likely.cumsum(-1)[:, :-1]
    letters = [torch.randint(LETTERS, (streams,))]
    for _ in range(length - 1):
        letters.append((reach[letters[-1]] < torch.rand(streams, 1)).sum(-1))
    return torch.stack(letters, 1)


def _regression(model: nn.Module) -> Task:
    into, out = torch.randn(16, 8) / 4, torch.randn(8, 1) / 8**0.5

    def draw(made_by: Generator, size: int, hardness: float) -> Batch:
        x = torch.randn(size, 16, generator=made_by)
        return x, 2 * torch.tanh(x @ into) @ out + 0.2 * hardness * torch.randn(size, 1, generator=made_by)

    return Task(model, draw, _squared, {"Adam": 3e-3, "AdamW": 3e-3, "SGD": 2e-2})


def _squared(out: Tensor, y: Tensor) -> Tensor:
    return (out.float() - y).square().mean(1)


def _cross_entropy(out: Tensor, y: Tensor) -> Tensor:
    return nn.functional.cross_entropy(out.float().flatten(0, -2), y.flatten(), reduction="none")


MODELS: Mapping[str, Callable[[], Task]] = {
    "mlp": mlp,
    "cnn": cnn,
    "char": char,
    "expert": lambda: _regression(WithExpert()),
    "gains": lambda: _regression(Gains()),
}
