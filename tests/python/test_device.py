"""torch.neuron: devices, their properties, the current device, and the methods torch generates for the backend."""

from __future__ import annotations

import threading

import pytest
import torch


def test_name_and_count():
    assert torch._C._get_privateuse1_backend_name() == "neuron"
    assert torch.neuron.is_available()
    assert torch.neuron.device_count() == 4
    assert torch.device("neuron:3").index == 3


def test_current_device_is_per_thread(second_device):
    torch.neuron.set_device(second_device)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.neuron.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]
    assert torch.neuron.current_device() == second_device
    assert torch.empty(2, device="neuron").device == torch.device("neuron", second_device)


def test_device_context(second_device):
    with torch.neuron.device(second_device):
        assert torch.neuron.current_device() == second_device
        with torch.neuron.device(None):
            assert torch.neuron.current_device() == second_device
        with torch.neuron.device("neuron:0"):
            assert torch.neuron.current_device() == 0
    assert torch.neuron.current_device() == 0
    tensor = torch.empty(1, device=f"neuron:{second_device}")
    with torch.neuron.device_of(tensor):
        assert torch.neuron.current_device() == second_device
    with torch.neuron.device_of(torch.empty(1)):
        assert torch.neuron.current_device() == 0


@pytest.mark.parametrize("action", [lambda: torch.neuron.set_device(7), lambda: torch.empty(2, device="neuron:7")])
def test_bad_index_is_a_runtime_error_with_the_valid_range(action):
    with pytest.raises(RuntimeError, match=r"invalid device index 7 for neuron: .*valid indices are 0 to 3"):
        action()


def test_bad_device_arguments():
    with pytest.raises(ValueError, match="Expected a neuron device, but got: cpu"):
        torch.neuron.synchronize("cpu")
    with pytest.raises(TypeError, match="expected None, an int, a str or a torch.device"):
        torch.neuron.synchronize(1.5)


def test_properties():
    properties = torch.neuron.get_device_properties(0)
    assert properties.name == torch.neuron.get_device_name() == "NeuronCore (host)"
    assert properties.total_memory >= torch.neuron.mem_get_info()[1] > 0
    assert torch.neuron.get_device_capability("neuron:1") == (2, 0)
    assert torch.neuron.is_bf16_supported()
    assert torch.neuron.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]
    assert torch.neuron.can_device_access_peer(0, 1)
    assert not torch.neuron.can_device_access_peer(1, 1)


def test_generated_methods():
    tensor = torch.arange(3).neuron()
    assert tensor.is_neuron and tensor.device.type == "neuron"
    assert not torch.arange(3).is_neuron
    module = torch.nn.Linear(2, 2).neuron()
    assert module.weight.is_neuron
    storage = torch.arange(3).untyped_storage().neuron()
    assert storage.is_neuron and storage.device.type == "neuron"
    assert torch.arange(3).neuron("neuron:1").device.index == 1


def test_queries_do_not_begin_the_use_of_the_device(run_python):
    result = run_python("""
        import torch
        assert torch.neuron.is_available() and torch.neuron.device_count() == 4
        torch.neuron.current_device(), torch.neuron.get_device_capability(), torch.neuron.get_device_properties()
        torch.manual_seed(3), torch.neuron.synchronize(), torch.neuron.empty_cache()
        assert not torch.neuron.is_initialized() and not torch.accelerator.memory_stats()
        torch.empty(1, device="neuron")
        assert torch.neuron.is_initialized()
    """)
    assert result.returncode == 0, result


def test_visible_cores(run_python):
    code = "import torch; print(torch.neuron.device_count())"
    assert run_python(code, NEURON_RT_NUM_CORES="2").stdout == "2\n"
    assert run_python(code, NEURON_RT_VISIBLE_CORES="1-3").stdout == "3\n"


def test_null_device_accepts_everything(run_python):
    result = run_python(
        """
        import torch
        print(torch.neuron.get_device_name(), torch.neuron.device_count())
        x = torch.ones(100, device="neuron") @ torch.ones(100, device="neuron")
        assert x.cpu().shape == () and torch.neuron.memory_allocated() > 0
        torch.neuron.synchronize()
        """,
        TORCH_NEURONX_DEVICE="null",
    )
    assert result.stdout == "NeuronCore (null) 4\n" and result.returncode == 0, result


def test_unknown_device_kind_is_named(run_python):
    result = run_python("import torch; torch.ones(1, device='neuron')", TORCH_NEURONX_DEVICE="tpu")
    assert result.returncode != 0
    assert "ValueError" in result.stderr and "TORCH_NEURONX_DEVICE" in result.stderr and "tpu" in result.stderr


def test_every_public_name_of_both_modules_exists():
    import torch_neuronx

    for name in torch.neuron.__all__:
        assert hasattr(torch.neuron, name), name
    for name in dir(torch_neuronx):
        assert hasattr(torch_neuronx, name), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        torch_neuronx.nonsense  # noqa: B018


def test_knobs():
    knobs = torch.backends.neuron
    assert knobs.eager_mode == "adaptive" and knobs.float64 == "float64" and not knobs.strict
    knobs.eager_mode = "blocking,strict"
    assert knobs.eager_mode == "blocking" and knobs.strict
    with pytest.raises(ValueError, match="unknown eager mode"):
        knobs.eager_mode = "lazy"
    with pytest.raises(ValueError, match="float64 must be"):
        knobs.float64 = "float16"


def test_environment_listing(run_python):
    code = (
        "import runpy, sys; sys.argv = ['torch_neuronx', 'env']; runpy.run_module('torch_neuronx', run_name='__main__')"
    )
    result = run_python(code, NEURON_RT_NUM_CORES="2")
    assert result.returncode == 0, result
    assert "NEURON_RT_NUM_CORES = 2  [integer, set]" in result.stdout
    assert "TORCH_NEURONX_EAGER_MODE" in result.stdout
