"""Errors a user can make: the class and the text are those of CPU PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

CASES: dict[str, Callable[[str], object]] = {
    "shapes": lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 4, device=d),
    "in-place shape": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "in-place dtype": lambda d: torch.ones(3, dtype=torch.long, device=d).add_(1.5),
    "in-place division": lambda d: torch.ones(3, dtype=torch.long, device=d).div_(2),
    "out dtype": lambda d: torch.exp(torch.ones(3, device=d), out=torch.ones(3, dtype=torch.long, device=d)),
    "bool subtraction": lambda d: torch.ones(3, dtype=torch.bool, device=d) - torch.ones(3, dtype=torch.bool, device=d),
    "bool negation": lambda d: -torch.ones(3, dtype=torch.bool, device=d),
    "alpha": lambda d: torch.add(
        torch.ones(3, dtype=torch.long, device=d), torch.ones(3, dtype=torch.long, device=d), alpha=1.5
    ),
    "negative integer power": lambda d: torch.tensor([2, 3], device=d) ** -1,
    "float bitwise": lambda d: torch.ones(3, device=d) & torch.ones(3, device=d),
    "overlapping output": lambda d: torch.ones(1, device=d).expand(3).add_(1),
    "partial overlap": lambda d: (lambda x: torch.add(x[:4], 1, out=x[1:5]))(torch.ones(6, device=d)),
    "zero divisor": lambda d: torch.tensor([1, 2], device=d) // 0,
    "rounding mode": lambda d: torch.div(torch.ones(2, device=d), 2, rounding_mode="up"),
    "gelu approximate": lambda d: torch.nn.functional.gelu(torch.ones(2, device=d), approximate="up"),
    "lerp dtypes": lambda d: torch.lerp(torch.ones(2, device=d), torch.ones(2, dtype=torch.double, device=d), 0.5),
    "item": lambda d: torch.ones(2, device=d).item(),
    "item empty": lambda d: torch.ones(0, device=d).item(),
    "negative size": lambda d: torch.empty(-1, device=d),
    "view": lambda d: torch.ones(2, 3, device=d).view(4),
    "view of transposed": lambda d: torch.ones(2, 3, device=d).t().view(6),
    "copy shape": lambda d: torch.ones(2, device=d).copy_(torch.ones(3, device=d)),
    "copy broadcast": lambda d: torch.ones(3, device=d).copy_(torch.ones(2, 3, device=d)),
    "copy overlap": lambda d: (lambda x: x[:4].copy_(x[1:5]))(torch.ones(6, device=d)),
    "copy into expanded": lambda d: torch.ones(1, device=d).expand(3).copy_(torch.ones(3, device=d)),
    "fill tensor": lambda d: torch.ones(3, device=d).fill_(torch.ones(2, device=d)),
    "fill overflow": lambda d: torch.ones(3, dtype=torch.uint8, device=d).fill_(300),
    "arange step": lambda d: torch.arange(0, 3, -1, device=d),
    "arange zero": lambda d: torch.arange(0, 3, 0, device=d),
    "masked_fill mask": lambda d: torch.ones(3, device=d).masked_fill(torch.ones(3, device=d), 1),
    "where shapes": lambda d: torch.where(torch.ones(2, dtype=torch.bool, device=d), torch.ones(3, device=d), 1.0),
    "as_strided": lambda d: torch.ones(3, device=d).as_strided((4,), (1,)),
    "unfold": lambda d: torch.ones(3, device=d).unfold(0, 5, 1),
    "view_as_complex": lambda d: torch.view_as_complex(torch.ones(3, device=d)),
    "clamp without bounds": lambda d: torch.clamp(torch.ones(3, device=d)),
    "permutation beyond the dtype": lambda d: torch.randperm(5000, out=torch.empty(0, dtype=torch.half, device=d)),
    "range of uniform numbers": lambda d: torch.zeros(3, device=d).uniform_(-3e38, 3e38),
    "range into one element": lambda d: torch.arange(0, 4, out=torch.zeros(1, device=d).expand(4)),
    "max of nothing": lambda d: torch.empty(2, 0, device=d).max(1),
    "min of nothing": lambda d: torch.empty(0, 3, device=d).min(0),
    "argmax of nothing": lambda d: torch.empty(2, 0, device=d).argmax(1),
    "tril": lambda d: torch.ones(3, device=d).tril(),
}

# The operators that convert to no dtype of an out= tensor but their result's.
OUTPUTS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "all": lambda x, out: torch.all(x, out=out),
    "any": lambda x, out: torch.any(x, 1, out=out),
    "amax": lambda x, out: torch.amax(x, 1, out=out),
    "aminmax": lambda x, out: torch.aminmax(x, dim=1, out=(out, out.clone())),
    "argmax": lambda x, out: torch.argmax(x, 1, out=out),
    "isin": lambda x, out: torch.isin(x, x, out=out),
    "max": lambda x, out: torch.max(x, 1, out=(out, torch.empty(0, dtype=torch.long, device=out.device))),
    "max indices": lambda x, out: torch.max(x, 1, out=(torch.empty(0, device=out.device), out)),
    "multinomial": lambda x, out: torch.multinomial(x, 2, out=out),
    "softmax": lambda x, out: torch.softmax(x, 1, out=out),
    "sort": lambda x, out: torch.sort(x, 1, out=(out, torch.empty(0, dtype=torch.long, device=out.device))),
    "topk": lambda x, out: torch.topk(x, 2, out=(out, torch.empty(0, dtype=torch.long, device=out.device))),
    "triu": lambda x, out: torch.triu(x, out=out),
    "mm": lambda x, out: torch.mm(x, x.t(), out=out),
    "index_select": lambda x, out: torch.index_select(x, 0, torch.tensor([0], device=x.device), out=out),
    "gather": lambda x, out: torch.gather(x, 0, torch.tensor([[0]], device=x.device), out=out),
}


@pytest.mark.parametrize("dtype", [torch.int8, torch.half, torch.double, torch.complex64], ids=str)
@pytest.mark.parametrize("name", OUTPUTS)
def test_dtype_of_an_output(name: str, dtype: torch.dtype) -> None:
    with pytest.raises(Exception) as expected:  # noqa: B017, PT011
        OUTPUTS[name](torch.ones(2, 3), torch.empty(0, dtype=dtype))
    for _ in range(2):  # what was inferred once may be remembered
        with pytest.raises(type(expected.value)) as actual:
            OUTPUTS[name](torch.ones(2, 3, device="neuron"), torch.empty(0, dtype=dtype, device="neuron"))
        assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


@pytest.mark.parametrize("name", CASES)
def test_text_and_class(name: str):
    with pytest.raises(Exception) as expected:  # noqa: B017, PT011
        CASES[name]("cpu")
    with pytest.raises(type(expected.value)) as actual:
        result = CASES[name]("neuron")
        torch.neuron.synchronize()
        del result
    assert type(actual.value) is type(expected.value)
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_two_devices_are_named():
    x = torch.ones(2, device="neuron")
    with pytest.raises(
        RuntimeError,
        match="Expected all tensors to be on the same device, but found at least two devices, neuron:0 and cpu!",
    ):
        x + torch.ones(2)
    with pytest.raises(RuntimeError, match="neuron:0 and cpu!"):
        x[torch.tensor([0, 1])] = torch.ones(2)  # indices may lie on the host, values may not
    with pytest.raises(RuntimeError, match="neuron:0 and cpu!"):
        torch.nonzero(x, out=torch.empty(0, dtype=torch.long))
    with pytest.raises(RuntimeError, match="neuron:0 and neuron:1!"):
        x + torch.ones(2, device="neuron:1")
    assert (x + torch.tensor(1.0)).tolist() == [2, 2]


def test_division_by_a_zero_on_the_device_is_a_late_error():
    x = torch.tensor([4, 5], device="neuron")
    y = x // torch.tensor([2, 0], device="neuron")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        y.cpu()
    assert (x // torch.tensor([2, 5], device="neuron")).tolist() == [2, 1]


def test_meta_source():
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.ones(2, device="neuron").copy_(torch.ones(2, device="meta"))


LATE_ERROR = """
    import torch

    def divide(x):
        return torch.nn.Parameter(x, requires_grad=False).floor_divide(torch.tensor([2, 0], device="neuron"))

    y = divide(torch.tensor([4, 5], device="neuron"))
    z = y + 1
    try:
        z.cpu()
    except RuntimeError as error:
        print(str(error).splitlines()[-1])
"""


def test_late_errors_name_the_line_that_recorded_them(run_python):
    traced = run_python(LATE_ERROR, TORCH_NEURONX_ENABLE_STACK_TRACE="1")
    assert traced.stdout.strip().endswith(", recorded at <string>:5 in divide)"), traced
    plain = run_python(LATE_ERROR, TORCH_NEURONX_ENABLE_STACK_TRACE="0")
    assert "raised by the recorded operation" in plain.stdout and "recorded at" not in plain.stdout, plain


# --- what has no value after a late error ----------------------------------------------------------------------------
def bad_rows() -> torch.Tensor:
    """4 rows of 2 that are never written: the index is found to be out of range when it is looked up."""
    table = torch.ones(4, 2, device="neuron")
    result = torch.nn.functional.embedding(torch.tensor([9, 0, 0, 0], device="neuron"), table)
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.neuron.synchronize()
    return result


def readable(tensor: torch.Tensor) -> bool:
    try:
        tensor.cpu()
    except IndexError as error:
        assert "index out of range in self" in str(error)
        return False
    return True


def test_parts_that_are_written_anew_can_be_read():
    bad = bad_rows()
    bad[:, 0] = 3  # every second element, from the first row to the last
    assert bad[:, 0].tolist() == [3, 3, 3, 3]
    assert not readable(bad[:, 1])
    assert not readable(bad)
    bad[1:3, 1] = 5
    assert bad[1:3].tolist() == [[3, 5], [3, 5]]
    assert not readable(bad[0])
    bad[::3, 1] = 7
    assert bad.tolist() == [[3, 7], [3, 5], [3, 5], [3, 7]]


def test_only_what_a_failed_operation_would_have_written_is_lost():
    good = torch.zeros(4, 4, device="neuron")
    good[:, 1::2] = bad_rows()
    assert good[:, ::2].tolist() == [[0, 0]] * 4
    assert not readable(good[:, 1:2])
    assert (good[:, 0] + 1).tolist() == [1] * 4
    good.add_(1)  # reads it: all is lost
    assert not readable(good[:, 0])
    good.fill_(2)
    assert good.sum().item() == 32


def test_other_streams_and_devices_raise_it_too():
    bad = bad_rows()
    side = torch.neuron.Stream()
    side.wait_stream(torch.neuron.current_stream())
    with torch.neuron.stream(side):
        doubled = bad * 2
        fine = torch.ones(3, device="neuron") * 2
        side.synchronize()
        assert not readable(doubled)
        assert fine.tolist() == [2, 2, 2]
    far = bad.to("neuron:1") + 1
    assert not readable(far)
    torch.neuron.synchronize()


def test_copies_into_pinned_memory_raise_where_they_are_waited_for():
    bad = bad_rows()
    for _ in range(2):
        host = torch.full((4, 2), 7.0).pin_memory()
        host.copy_(bad, non_blocking=True)
        with pytest.raises(IndexError, match="index out of range in self"):
            torch.neuron.synchronize()
        torch.neuron.synchronize()
        assert host.eq(7).all()


def test_recycled_memory_is_clean_and_those_who_read_before_still_raise():
    for _ in range(4):
        table = torch.ones(4, 2, device="neuron")
        bad = torch.nn.functional.embedding(torch.tensor([9, 0, 0, 0], device="neuron"), table)
        sums = bad.sum(1)
        del bad
        again = torch.zeros(4, 2, device="neuron") + 1
        with pytest.raises(IndexError):
            torch.neuron.synchronize()
        assert again.tolist() == [[1, 1]] * 4
        assert not readable(sums)


LITTLE_HOST_MEMORY = """
    import resource
    import torch

    x = torch.ones(24 << 20, device="neuron")
    small = torch.ones(4, device="neuron")
    (small + 1).sum().item()
    cached = [torch.empty(24 << 20, device="neuron") for _ in range(4)]
    del cached
    torch.neuron.synchronize()
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20), resource.RLIM_INFINITY))
    # Not compiled yet: what lies between the operations goes to memory of the host, of which there is not enough.
    y = ((x * 2 + 1) * 3).sum()
    try:
        y.item()
    except torch.OutOfMemoryError as error:
        print(str(error).splitlines()[0])
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        y.cpu()
    except torch.OutOfMemoryError as error:
        print("again")
    print((small * 2).tolist(), ((x * 2 + 1) * 3).sum().item() == 9 * x.numel())
"""


def test_no_memory_for_an_operation_that_runs_later(run_python):
    result = run_python(LITTLE_HOST_MEMORY, TORCH_NEURONX_DISABLE_NEFF_CACHE="1")
    assert result.returncode == 0, result
    first, again, rest = result.stdout.strip().splitlines()
    assert first.startswith("out of memory: the host has none left")
    assert (again, rest) == ("again", "[2.0, 2.0, 2.0, 2.0] True")
