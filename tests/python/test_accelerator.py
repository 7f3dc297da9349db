"""The torch.accelerator contract: torch's device-independent module must work on us and agree with torch.neuron."""

from __future__ import annotations

import pytest
import torch


def test_identity():
    assert torch.accelerator.current_accelerator() == torch.device("neuron")
    assert torch.accelerator.current_accelerator(check_available=True) == torch.device("neuron")
    assert torch.accelerator.is_available()


def test_device_count_does_not_recurse():
    # torch.accelerator.device_count() calls torch.neuron.device_count(): ours must not call it back (S4).
    assert torch.accelerator.device_count() == torch.neuron.device_count() == 4


def test_current_device(second_device):
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.set_device_index(second_device)
    assert torch.accelerator.current_device_index() == torch.neuron.current_device() == second_device
    with torch.accelerator.device_index(0):
        assert torch.neuron.current_device() == 0
    assert torch.neuron.current_device() == second_device


def test_capability_lists_what_is_supported():
    supported = torch.accelerator.get_device_capability()["supported_dtypes"]
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint16):
        assert dtype in supported
    for dtype in (torch.qint8, torch.complex32, torch.float8_e4m3fnuz, torch.bits8):
        assert dtype not in supported


def test_streams_and_synchronize():
    stream = torch.Stream(device="neuron")
    before = torch.accelerator.current_stream()
    with stream:
        assert torch.accelerator.current_stream() == stream
        x = torch.ones(4, device="neuron") + 1
    assert torch.accelerator.current_stream() == before
    torch.accelerator.synchronize()
    assert x.tolist() == [2, 2, 2, 2]
    torch.accelerator.set_stream(stream)
    assert torch.neuron.current_stream() == stream
    torch.accelerator.set_stream(before)


def test_memory_agrees_with_torch_neuron():
    tensor = torch.empty(1 << 20, dtype=torch.uint8, device="neuron")
    assert torch.accelerator.memory_allocated() == torch.neuron.memory_allocated() >= tensor.nbytes
    assert torch.accelerator.memory_reserved() == torch.neuron.memory_reserved() >= tensor.nbytes
    assert torch.accelerator.max_memory_allocated() == torch.neuron.max_memory_allocated()
    theirs, ours = torch.accelerator.memory_stats(), torch.neuron.memory_stats()
    assert all(ours[name] == value for name, value in theirs.items() if name in ours)
    assert {"allocated_bytes.all.peak", "reserved_bytes.all.current", "num_ooms"} <= set(theirs)
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free < total
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    torch.accelerator.empty_cache()
    torch.accelerator.empty_host_cache()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_defaults_to_the_device_and_draws_the_same_numbers_again(reentrant):
    from torch.utils.checkpoint import DefaultDeviceType, checkpoint

    assert DefaultDeviceType.get_device_type() == "neuron"
    x = torch.ones(256, device="neuron", requires_grad=True)
    torch.manual_seed(1)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t * 2, 0.5), x, use_reentrant=reentrant)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    assert 0 < y.count_nonzero().item() < 256
