"""torch.save and torch.load, deepcopy, and pickling of device tensors."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch


def saved(thing: object, **options: object) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(thing, buffer, **options)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (None, "neuron:1"),
        ("cpu", "cpu"),
        ("neuron:0", "neuron:0"),
        ("neuron", "neuron:0"),
        (torch.device("neuron:2"), "neuron:2"),
        (lambda storage, tag: storage.neuron("neuron:3"), "neuron:3"),
        (lambda storage, tag: None, "neuron:1"),
        ({"neuron:1": "neuron:2"}, "neuron:2"),
        ({"neuron:1": "cpu"}, "cpu"),
    ],
)
def test_map_location(legacy, location, expected):
    tensor = torch.arange(12, device="neuron:1").reshape(3, 4)
    buffer = saved({"x": tensor}, _use_new_zipfile_serialization=not legacy)
    loaded = torch.load(buffer, map_location=location, weights_only=not callable(location))["x"]
    assert loaded.device == torch.device(expected)
    assert loaded.tolist() == tensor.tolist()


def test_save_waits_for_pending_work():
    x = torch.ones(1000, device="neuron")
    for i in range(10):
        x = x + i
    assert torch.load(saved(x)).tolist() == [46.0] * 1000


def test_views_share_storage_after_loading():
    base = torch.arange(10.0, device="neuron")
    whole, part = torch.load(saved([base, base[2:5]]))
    part.fill_(-1)
    assert whole.tolist() == [0, 1, -1, -1, -1, 5, 6, 7, 8, 9]
    assert part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64, torch.float8_e5m2]
)
def test_dtypes_keep_their_bits(dtype):
    host = torch.randint(0, 2, (37,)).to(dtype)
    loaded = torch.load(saved(host.to("neuron")), map_location="cpu")
    assert loaded.dtype == dtype and bytes(loaded.untyped_storage()) == bytes(host.untyped_storage())


def test_non_contiguous_and_empty():
    tensor = torch.arange(12.0, device="neuron").reshape(3, 4).t()
    loaded = torch.load(saved(tensor))
    assert loaded.stride() == tensor.stride() and loaded.tolist() == tensor.tolist()
    assert torch.load(saved(torch.empty(0, 3, device="neuron"))).shape == (0, 3)


def test_module_and_optimizer_state():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(2, 4, device="neuron")).sum().backward()
    optimizer.step()
    state = torch.load(saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()}), weights_only=True)
    again = torch.nn.Linear(4, 3).to("neuron")
    again.load_state_dict(state["model"])
    assert again.weight.device == torch.device("neuron:0")
    assert torch.equal(again.weight.cpu(), model.weight.cpu())
    assert state["optimizer"]["state"][0]["exp_avg"].device.type == "neuron"


def test_memory_mapped_load(tmp_path):
    path = tmp_path / "weights.pt"
    torch.save(torch.arange(100, device="neuron"), path)
    assert torch.load(path, map_location="cpu", mmap=True).tolist() == list(range(100))


def test_device_that_does_not_exist(run_python, tmp_path):
    path = tmp_path / "weights.pt"
    torch.save(torch.ones(2, device="neuron:3"), path)
    result = run_python(f"import torch; torch.load({str(path)!r})", NEURON_RT_NUM_CORES="1")
    assert "Attempting to deserialize object on NEURON device 3" in result.stderr, result
    assert (
        run_python(f"import torch; torch.load({str(path)!r}, map_location='cpu')", NEURON_RT_NUM_CORES="1").returncode
        == 0
    )


def test_pickle_and_deepcopy():
    tensor = torch.arange(5.0, device="neuron:1", requires_grad=True)
    for copied in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert copied.device == tensor.device and copied.requires_grad
        assert copied.tolist() == tensor.tolist()
        assert copied.data_ptr() != tensor.data_ptr()
    parameter = torch.nn.Parameter(torch.ones(2, device="neuron"))
    assert isinstance(copy.deepcopy(parameter), torch.nn.Parameter)


@pytest.mark.parametrize("make", [torch.neuron.Stream, torch.neuron.Event])
def test_streams_and_events_are_not_pickled(make):
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(make())
