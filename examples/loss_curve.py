"""Draws loss curves into a PNG with pillow alone."""

from __future__ import annotations

import math
from pathlib import Path

WIDTH, HEIGHT = 960, 540
LEFT, TOP, RIGHT, BOTTOM = 70, 50, 25, 50
COLOURS = ["#1f6fb4", "#d1622b", "#3a923a", "#8a5cb0"]


def ticks(low: float, high: float, count: int) -> list[float]:
    """About `count` round numbers between low and high."""
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9) / count))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count)
    first = math.ceil(low / step)
    return [index * step for index in range(first, math.floor(high / step) + 1)]


def draw(path: Path, title: str, curves: dict[str, list[float]]) -> None:
    """One line per curve: x is the step (from 1), y the loss."""
    from PIL import Image, ImageDraw, ImageFont

    steps = max(len(values) for values in curves.values())
    finite = [value for values in curves.values() for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    margin = 0.05 * (high - low) or 0.5
    low, high = low - margin, high + margin

    def point(step: float, loss: float) -> tuple[float, float]:
        x = LEFT + (step - 1) / max(steps - 1, 1) * (WIDTH - LEFT - RIGHT)
        return x, TOP + (high - loss) / (high - low) * (HEIGHT - TOP - BOTTOM)

    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=15)
    for loss in ticks(low, high, 8):
        y = point(1, loss)[1]
        pen.line([(LEFT, y), (WIDTH - RIGHT, y)], fill="#e4e4e4")
        pen.text((LEFT - 8, y), f"{loss:.4g}", fill="#444444", font=font, anchor="rm")
    for step in ticks(1, max(steps, 2), 10):
        x = point(step, low)[0]
        pen.line([(x, HEIGHT - BOTTOM), (x, HEIGHT - BOTTOM + 5)], fill="#444444")
        pen.text((x, HEIGHT - BOTTOM + 8), f"{step:g}", fill="#444444", font=font, anchor="mt")
    pen.rectangle([(LEFT, TOP), (WIDTH - RIGHT, HEIGHT - BOTTOM)], outline="#444444")
    pen.text((LEFT, TOP / 2), title, fill="black", font=ImageFont.load_default(size=18), anchor="lm")
    pen.text((WIDTH - RIGHT, HEIGHT - 8), "step", fill="#444444", font=font, anchor="rb")
    for index, (name, values) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = [point(step, value) for step, value in enumerate(values, 1) if math.isfinite(value)]
        if len(points) > 1:
            pen.line(points, fill=colour, width=2, joint="curve")
        pen.text((WIDTH - RIGHT - 12, TOP + 12 + 20 * index), name, fill=colour, font=font, anchor="rt")
    image.save(path)
