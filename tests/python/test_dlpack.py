"""DLPack both ways, and the compatibility blocks that torch 2.13 makes necessary."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from torch.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

import torch_neuronx
from torch_neuronx import compat


def test_device_of_a_tensor(second_device):
    assert torch.ones(2, device="neuron").__dlpack_device__() == (DLDeviceType.kDLExtDev, 0)
    assert torch.ones(2, device=f"neuron:{second_device}").__dlpack_device__() == (
        DLDeviceType.kDLExtDev,
        second_device,
    )
    assert torch.ones(2).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)


def test_round_trip_shares_memory(second_device):
    x = torch.arange(6, device=f"neuron:{second_device}").reshape(2, 3)
    for y in (torch.from_dlpack(x), from_dlpack(to_dlpack(x)), torch.from_dlpack(x.__dlpack__(max_version=(1, 0)))):
        assert y.device == x.device and y.tolist() == [[0, 1, 2], [3, 4, 5]]
        y.add_(1)
        assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
        x.sub_(1)
        assert y.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_export_waits_for_pending_work():
    x = torch.zeros(100, device="neuron")
    for _ in range(10):
        x = x + 1
    assert torch.from_dlpack(x).tolist() == [10.0] * 100


def test_the_importer_keeps_the_memory_alive():
    y = torch.from_dlpack(torch.full((1000,), 7.0, device="neuron"))
    torch.full((1000,), -1.0, device="neuron")
    assert y.sum().item() == 7000.0


def test_a_host_read_lets_the_executor_release_what_was_imported(run_python):
    result = run_python(
        """
        import torch

        stream = torch.neuron.current_stream()
        for _ in range(300):
            exported = torch.rand(100000, device="neuron")
            imported = torch.from_dlpack(exported)
            result = imported.sort()[0]
            del exported, imported
            stream.query()  # the executor begins; it is the last to hold the memory, whose object is Python's
            result.data_ptr()  # waits for it
        print("through")
        """,
        timeout=100,
    )
    assert result.stdout.split() == ["through"], result


def test_non_contiguous():
    x = torch.arange(12.0, device="neuron").reshape(3, 4).t()[1:]
    y = torch.from_dlpack(x)
    assert y.stride() == x.stride() and y.tolist() == x.tolist()


def test_what_cannot_be_exported():
    with pytest.raises(BufferError, match="require gradient"):
        torch.from_dlpack(torch.ones(2, device="neuron", requires_grad=True))
    with pytest.raises(BufferError, match="conjugate bit"):
        torch.from_dlpack(torch.ones(2, dtype=torch.complex64, device="neuron").conj())


def test_subclasses_keep_their_own_protocol():
    class Logged(torch.Tensor):
        pass

    x = torch.ones(2, device="neuron").as_subclass(Logged)
    assert x.__dlpack_device__() == (DLDeviceType.kDLExtDev, 0)


# The list of all changes made to torch. A new one needs an upstream fault, no hook, and a row here.
EXPECTED_BLOCKS = {"autograd_threads": [], "dlpack_device": ["torch.Tensor.__dlpack_device__"]}


def assigned_torch_attributes(source: str) -> list[str]:
    """Targets of assignments into torch, written as attributes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target).split(".")[0] == "torch":
                found.append(ast.unparse(target))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            found.append(ast.unparse(node))
    return found


def test_compatibility_blocks_are_listed_and_explained():
    folder = Path(compat.__file__).parent
    blocks = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert blocks == set(EXPECTED_BLOCKS) == {block.__name__.rsplit(".", 1)[1] for block in compat.BLOCKS}
    for block in compat.BLOCKS:
        assert block.FAULT.startswith("torch 2.13 ") and len(block.REMOVE_WHEN) > 20
        name = block.__name__.rsplit(".", 1)[1]
        assert assigned_torch_attributes((folder / f"{name}.py").read_text()) == EXPECTED_BLOCKS[name]


def test_nothing_else_in_the_package_changes_torch():
    package = Path(torch_neuronx.__file__).parent
    for path in package.rglob("*.py"):
        if "compat" in path.parts:
            continue
        # torch.backends.neuron is our own namespace, where torch keeps those of its backends.
        assert [t for t in assigned_torch_attributes(path.read_text()) if t != "torch.backends.neuron"] == [], path
