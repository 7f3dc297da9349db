"""A compact GPT: token and position embeddings, pre-norm blocks, a linear head. Plain PyTorch, no device in sight."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    vocabulary: int = 256
    layers: int = 6
    heads: int = 6
    width: int = 384
    context: int = 256


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
        self.query_key_value = nn.Linear(config.width, 3 * config.width)
        self.project = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (part.view(shape).transpose(1, 2) for part in self.query_key_value(x).split(width, dim=-1))
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.norm_mlp = nn.LayerNorm(config.width)
        self.expand = nn.Linear(config.width, 4 * config.width)
        self.contract = nn.Linear(4 * config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_attention(x))
        return x + self.contract(F.gelu(self.expand(self.norm_mlp(x))))


class GPT(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def initialize(self, generator: torch.Generator) -> None:
        """Draws all weights on the CPU, so that every device and dtype starts from the same numbers."""
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                value = (
                    torch.ones_like(parameter) if "norm" in name and "weight" in name else torch.zeros_like(parameter)
                )
            else:
                residual = name.endswith(("project.weight", "contract.weight"))
                deviation = 0.02 / (2 * self.config.layers) ** 0.5 if residual else 0.02
                value = torch.empty(parameter.shape).normal_(0.0, deviation, generator=generator)
            with torch.no_grad():
                parameter.copy_(value)

    def forward(self, tokens: Tensor) -> Tensor:
        """[batch, length] of byte values -> [batch, length, vocabulary] of logits."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())
