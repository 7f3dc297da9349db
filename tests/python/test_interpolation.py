"""torch.nn.functional.interpolate: every mode, values and gradients against the CPU's in float64."""

import pytest
import torch
import torch.nn.functional as F

from reference import assert_near, check, check_gradients

NATIVE = {
    f"{name}{suffix}"
    for name in (
        *(
            f"{prefix}upsample_nearest{exact}{rank}d"
            for prefix, exact in (("", ""), ("_", "_exact"))
            for rank in (1, 2, 3)
        ),
        *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    )
    for suffix in ("", "_backward")
}
SHAPES = {1: (2, 3, 7), 2: (2, 3, 5, 6), 3: (1, 2, 3, 4, 5)}
SMOOTH = {1: "linear", 2: "bilinear", 3: "trilinear"}


def samples():
    for rank, shape in SHAPES.items():
        targets = ([9] * rank, [2] * rank, list(shape[2:]), [2 * n for n in shape[2:]], [1] * rank)
        for mode in ("nearest", "nearest-exact", SMOOTH[rank], *(("bicubic",) if rank == 2 else ())):
            for corners in (False, True) if "linear" in mode or mode == "bicubic" else (None,):
                for size in targets:
                    yield shape, {"size": size, "mode": mode, "align_corners": corners}
                for scale in (1.7, 0.6):
                    for again in (False, True):
                        yield (
                            shape,
                            {
                                "scale_factor": scale,
                                "mode": mode,
                                "align_corners": corners,
                                "recompute_scale_factor": again,
                            },
                        )


SAMPLES = list(samples())


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("shape", "options"), SAMPLES, ids=str)
def test_values_and_gradients(shape, options):
    def function(x):
        return F.interpolate(x, **options)

    # Positions are float32: a cubic's slope turns their last digit into several of the value.
    check(function, [numbers(*shape)], epsilons=64, scale=1.0)
    check_gradients(function, [numbers(*shape)], epsilons=64)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_dtypes(mode, dtype):
    x = numbers(2, 3, 5, 6).to(dtype)
    check(lambda x: F.interpolate(x, size=(8, 9), mode=mode), [x], epsilons=8, scale=1.0)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_layouts(mode):
    """Strided input, and channels-last, which the result keeps."""
    x = numbers(2, 3, 5, 6)
    last = x.to(memory_format=torch.channels_last)
    for value in (last, x.transpose(2, 3), x[:, ::2]):
        expected = F.interpolate(value, size=(8, 9), mode=mode)
        actual = F.interpolate(value.to("neuron"), size=(8, 9), mode=mode)
        assert_near(actual, expected.double(), 8, 1.0)
    assert F.interpolate(last.to("neuron"), size=(8, 9), mode=mode).is_contiguous(memory_format=torch.channels_last)


def test_signs_of_zero_and_nan_pass_through():
    x = torch.tensor([[[-0.0, float("nan"), float("-inf"), 1.0]]])
    actual = F.interpolate(x.to("neuron"), size=8, mode="nearest").cpu()
    expected = F.interpolate(x, size=8, mode="nearest")
    assert torch.equal(actual.view(torch.int32), expected.view(torch.int32))


def test_errors_are_the_cpus():
    with pytest.raises(RuntimeError, match="Input and output sizes should be greater than 0"):
        torch.ops.aten.upsample_nearest2d(torch.ones(1, 1, 2, 2, device="neuron"), [0, 3])
