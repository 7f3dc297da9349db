"""Generators: a 16-byte (seed, offset) state that operations take from when they are recorded."""

from __future__ import annotations

import copy
import struct

import pytest
import torch


def words(state: torch.Tensor) -> tuple[int, int]:
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.numel() == 16
    return struct.unpack("<QQ", bytes(state.tolist()))


def test_state_layout_and_round_trip():
    generator = torch.Generator("neuron").manual_seed(77)
    assert generator.device == torch.device("neuron:0")
    assert words(generator.get_state()) == (77, 0)
    torch.rand(10, device="neuron", generator=generator)
    seed, offset = words(generator.get_state())
    assert seed == 77 and offset > 0 and offset % 4 == 0
    state = generator.get_state()
    first = torch.rand(10, device="neuron", generator=generator)
    generator.set_state(state)
    assert torch.equal(first, torch.rand(10, device="neuron", generator=generator))


def test_bad_states_are_refused():
    generator = torch.Generator("neuron")
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        generator.set_state(torch.zeros(16))
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        generator.set_state(torch.zeros(24, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="offset must be a multiple of 4, got 6"):
        generator.set_offset(6)


def test_seeds():
    generator = torch.Generator("neuron:1").manual_seed(-1)
    assert generator.initial_seed() == 2**64 - 1
    assert generator.device.index == 1
    other = torch.Generator("neuron")
    assert other.seed() == other.initial_seed()


def test_manual_seed_reaches_every_device():
    torch.manual_seed(1234)
    assert [words(state) for state in torch.neuron.get_rng_state_all()] == [(1234, 0)] * 4
    first = torch.rand(5, device="neuron")
    torch.manual_seed(1234)
    assert torch.equal(first, torch.rand(5, device="neuron"))
    torch.neuron.manual_seed(5)
    assert torch.neuron.initial_seed() == 5
    assert torch.neuron.default_generators[1].initial_seed() == 1234
    torch.neuron.seed_all()
    assert len({generator.initial_seed() for generator in torch.neuron.default_generators}) == 1


def test_default_generators_are_a_sequence():
    generators = torch.neuron.default_generators
    assert len(generators) == len(list(generators)) == 4
    assert generators[-1].device.index == 3
    assert [g.device.index for g in generators[1:3]] == [1, 2]
    with pytest.raises(IndexError, match="there are 4 neuron generators, got index 4"):
        generators[4]


def test_rng_state_functions_and_offsets(second_device):
    torch.neuron.set_rng_state(torch.tensor(list(struct.pack("<QQ", 9, 64)), dtype=torch.uint8), second_device)
    assert torch.neuron.random._get_rng_state_offset(second_device) == 64
    torch.neuron.random._set_rng_state_offset(128, f"neuron:{second_device}")
    assert words(torch.neuron.get_rng_state(second_device)) == (9, 128)


def test_fork_rng_restores_the_device():
    torch.manual_seed(3)
    before = torch.neuron.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        torch.rand(100, device="neuron")
    assert torch.equal(torch.neuron.get_rng_state(), before)


def test_clone_and_graphsafe_state():
    generator = torch.Generator("neuron").manual_seed(8)
    torch.rand(7, device="neuron", generator=generator)
    clone = generator.clone_state()
    assert torch.equal(clone.get_state(), generator.get_state())
    other = torch.Generator("neuron").graphsafe_set_state(generator.graphsafe_get_state())
    assert torch.equal(other.get_state(), generator.get_state())


def test_generator_of_another_device_is_refused(second_device):
    with pytest.raises(RuntimeError, match="Expected a 'neuron' device type for generator but found 'cpu'"):
        torch.rand(3, device="neuron", generator=torch.Generator("cpu"))
    with pytest.raises(RuntimeError, match="Expected a generator of device neuron:0"):
        torch.rand(3, device="neuron", generator=torch.Generator(f"neuron:{second_device}"))


def test_a_result_does_not_depend_on_the_mode_or_the_flush():
    def draw(flush: bool) -> list[torch.Tensor]:
        torch.manual_seed(11)
        parts = []
        for _ in range(3):
            parts.append(torch.randn(33, device="neuron"))
            if flush:
                torch.neuron.synchronize()
        return [part.cpu() for part in parts]

    reference = draw(False)
    assert all(torch.equal(a, b) for a, b in zip(reference, draw(True), strict=True))
    torch.backends.neuron.eager_mode = "blocking"
    assert all(torch.equal(a, b) for a, b in zip(reference, draw(False), strict=True))
    assert len({tuple(part.tolist()) for part in reference}) == 3


def test_generators_cannot_be_deep_copied_by_accident():
    state = torch.Generator("neuron").manual_seed(4).get_state()
    assert torch.equal(copy.deepcopy(state), state)
