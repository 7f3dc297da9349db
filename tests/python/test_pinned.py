"""Pinned host memory: where it comes from, that copies from it are complete, and that it is reused."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset


def test_pin_memory_and_is_pinned():
    host = torch.arange(1000.0)
    assert not host.is_pinned()
    pinned = host.pin_memory()
    assert pinned.is_pinned() and pinned.device.type == "cpu"
    assert pinned[10:].is_pinned()
    assert torch.equal(pinned, host)
    assert pinned.pin_memory() is pinned
    assert not torch.ones(3, device="neuron").cpu().is_pinned()


def test_factories_make_pinned_tensors():
    assert torch.empty(5, pin_memory=True).is_pinned()
    assert torch.zeros(5, pin_memory=True).tolist() == [0] * 5
    assert torch.full((3,), 2.0, pin_memory=True).is_pinned()


def test_pinned_storage():
    storage = torch.arange(4, dtype=torch.uint8).untyped_storage().pin_memory()
    assert storage.is_pinned() and list(storage) == [0, 1, 2, 3]


def test_round_trip_without_blocking():
    source = torch.arange(1 << 16, dtype=torch.float32).pin_memory()
    on_device = source.to("neuron", non_blocking=True)
    target = torch.empty(1 << 16, pin_memory=True)
    target.copy_(on_device * 2, non_blocking=True)
    torch.neuron.synchronize()
    assert torch.equal(target, torch.arange(1 << 16, dtype=torch.float32) * 2)


def test_memory_freed_during_a_copy_is_not_reused_too_early():
    for i in range(30):
        source = torch.full((1 << 14,), float(i)).pin_memory()
        on_device = source.to("neuron", non_blocking=True)
        del source
        other = torch.full((1 << 14,), -1.0).pin_memory()
        assert on_device[5].item() == i and on_device.sum().item() == float(i) * (1 << 14)
        del other


def test_freed_pinned_memory_is_reused():
    pinned = torch.empty(1 << 20, pin_memory=True)
    address = pinned.data_ptr()
    del pinned
    assert torch.empty(1 << 20, pin_memory=True).data_ptr() == address
    torch.accelerator.empty_host_cache()


def test_data_loader_pins_batches():
    loader = DataLoader(TensorDataset(torch.arange(64.0)), batch_size=16, pin_memory=True)
    total = 0.0
    for (batch,) in loader:
        assert batch.is_pinned()
        total += batch.to("neuron", non_blocking=True).sum().item()
    assert total == sum(range(64))
