"""Device memory: statistics in CUDA's names, the limit and its error, snapshots, storage resizing, pointer exposure."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
import torch

MIB = 1 << 20


def allocated() -> int:
    return torch.neuron.memory_allocated()


def test_allocation_and_release_are_counted():
    gc.collect()
    before = torch.neuron.memory_stats()
    tensor = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    during = torch.neuron.memory_stats()
    assert during["allocated_bytes.all.current"] - before["allocated_bytes.all.current"] >= 3 * MIB
    assert during["requested_bytes.all.current"] - before["requested_bytes.all.current"] == 3 * MIB
    assert during["allocation.large_pool.current"] - before["allocation.large_pool.current"] == 1
    del tensor
    after = torch.neuron.memory_stats()
    assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert after["allocation.all.freed"] == before["allocation.all.freed"] + 1


def test_peak_and_reset():
    torch.neuron.reset_peak_memory_stats()
    base = allocated()
    tensor = torch.empty(8 * MIB, dtype=torch.uint8, device="neuron")
    del tensor
    assert torch.neuron.max_memory_allocated() >= base + 8 * MIB
    torch.neuron.reset_peak_memory_stats()
    assert torch.neuron.max_memory_allocated() == allocated()
    torch.neuron.reset_accumulated_memory_stats()
    assert torch.neuron.memory_stats()["allocation.all.freed"] == 0


def test_reserved_covers_allocated_and_can_be_given_back():
    tensor = torch.empty(40 * MIB, dtype=torch.uint8, device="neuron")
    assert torch.neuron.memory_reserved() >= allocated() >= tensor.nbytes
    del tensor
    reserved = torch.neuron.memory_reserved()
    torch.neuron.empty_cache()
    assert torch.neuron.memory_reserved() <= reserved - 40 * MIB


def test_nested_statistics_and_summary():
    torch.empty(1, device="neuron")
    nested = torch.neuron.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == allocated()
    summary = torch.neuron.memory_summary()
    assert "device neuron:0" in summary and "Reserved memory" in summary and "small pool" in summary
    assert "small pool" not in torch.neuron.memory_summary(abbreviated=True)


def test_statistics_are_per_device(second_device):
    before = torch.neuron.memory_allocated(second_device), torch.neuron.memory_allocated(0)
    tensor = torch.empty(2 * MIB, dtype=torch.uint8, device=f"neuron:{second_device}")
    assert torch.neuron.memory_allocated(second_device) >= before[0] + tensor.nbytes
    assert torch.neuron.memory_allocated(0) == before[1]


def test_out_of_memory_names_the_request_and_the_largest_tensors(run_python):
    result = run_python(
        """
        import torch
        keep = torch.empty(48 << 20, dtype=torch.uint8, device="neuron")
        try:
            torch.empty(100 << 20, dtype=torch.uint8, device="neuron")
        except torch.OutOfMemoryError as error:
            print(error)
        assert torch.neuron.memory_stats()["num_ooms"] == 1
        # Still usable.
        assert torch.ones(3, device="neuron").tolist() == [1, 1, 1]
        """,
        TORCH_NEURONX_MEMORY_LIMIT="64MiB",
    )
    assert result.returncode == 0, result
    assert "100.00 MiB" in result.stdout or "104857600" in result.stdout, result
    assert "48.00 MiB" in result.stdout or "50331648" in result.stdout, result


def test_snapshot_has_the_format_of_memory_viz(tmp_path):
    from torch.cuda._memory_viz import segsum, trace

    torch.neuron.memory._record_memory_history()
    try:
        tensor = torch.empty(5 * MIB, dtype=torch.uint8, device="neuron")
        address = tensor.data_ptr()
        del tensor
        path = tmp_path / "snapshot.pickle"
        torch.neuron.memory._dump_snapshot(str(path))
    finally:
        torch.neuron.memory._record_memory_history(enabled=None)
    snapshot = pickle.loads(path.read_bytes())
    events = [event for event in snapshot["device_traces"][0] if event.get("addr") == address]
    assert [event["action"] for event in events] == ["alloc", "free_requested", "free_completed"]
    assert all(event["size"] >= 5 * MIB for event in events)
    assert sum(block["size"] for s in snapshot["segments"] for block in s["blocks"]) == sum(
        s["total_size"] for s in snapshot["segments"]
    )
    assert "5.0MiB" in trace(snapshot)
    assert segsum(snapshot)
    assert torch.neuron.memory._snapshot()["device_traces"][0] == []


@pytest.mark.parametrize("size", [0, 3, 4096])
def test_storage_resize_keeps_the_common_bytes(size):
    tensor = torch.arange(100, dtype=torch.uint8, device="neuron")
    storage = tensor.untyped_storage()
    storage.resize_(size)
    assert storage.nbytes() == size
    view = torch.empty(0, dtype=torch.uint8, device="neuron").set_(storage)
    kept = min(size, 100)
    assert view[:kept].tolist() == list(range(kept))


def test_storage_freed_and_taken_back():
    tensor = torch.ones(1 << 18, device="neuron")
    before = allocated()
    tensor.untyped_storage().resize_(0)
    assert allocated() <= before - tensor.numel() * 4
    assert tensor.data_ptr() == 0
    tensor.untyped_storage().resize_(tensor.numel() * 4)
    tensor.fill_(3)
    assert tensor.sum().item() == 3 * (1 << 18)


def read_memory(address: int, count: int) -> list[float]:
    import ctypes

    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)).tolist()


def test_a_pointer_shows_finished_data():
    x = torch.ones(1000, device="neuron")
    for i in range(5):
        x += i
    assert read_memory(x.data_ptr(), 3) == [11, 11, 11]
    # Once exposed, later writes show as well: at the next exposure, and their data is never dropped.
    x.mul_(2)
    assert read_memory(x.untyped_storage().data_ptr(), 3) == [22, 22, 22]
    address = x.data_ptr()
    x.add_(1)
    torch.neuron.synchronize()
    assert read_memory(address, 3) == [23, 23, 23]


def test_writing_through_a_pointer_is_seen_by_later_operations():
    import ctypes

    x = torch.zeros(4, device="neuron")
    (ctypes.c_float * 4).from_address(x.data_ptr())[:] = [1, 2, 3, 4]
    assert (x * 2).tolist() == [2, 4, 6, 8]


def test_numpy_refuses_a_device_tensor_like_cuda():
    x = torch.ones(3, device="neuron")
    with pytest.raises(TypeError, match=r"can't convert neuron:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
        x.numpy()
    assert x.cpu().numpy().tolist() == [1, 1, 1]


def test_empty_tensors_have_no_memory():
    before = torch.neuron.memory_stats()["allocation.all.current"]
    tensor = torch.empty(0, 5, device="neuron")
    assert tensor.data_ptr() == 0 and tensor.device.type == "neuron"
    assert torch.neuron.memory_stats()["allocation.all.current"] == before
    assert tensor.cpu().shape == (0, 5)


def test_memory_profiling_sees_allocations():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        tensor = torch.empty(MIB, dtype=torch.uint8, device="neuron")
        del tensor
    memory = [event.device_memory_usage for event in profiler.events() if event.device_memory_usage]
    assert max(memory) >= MIB
