"""Streams and events in Python, through torch.neuron and through torch's own classes."""

from __future__ import annotations

import threading

import pytest
import torch


def test_classes_are_subclasses_of_torch():
    assert issubclass(torch.neuron.Stream, torch.Stream)
    assert issubclass(torch.neuron.Event, torch.Event)
    stream = torch.neuron.Stream(priority=-1)
    assert isinstance(stream, torch.Stream) and stream.device == torch.device("neuron:0")


def test_default_and_current_stream(second_device):
    assert torch.neuron.current_stream() == torch.neuron.default_stream()
    assert torch.neuron.default_stream().stream_id == 0
    assert torch.neuron.default_stream(second_device).device.index == second_device
    with pytest.raises(RuntimeError, match="valid indices are 0 to 3"):
        torch.neuron.default_stream(9)


def test_stream_context_restores_stream_and_device(second_device):
    stream = torch.neuron.Stream(second_device)
    with torch.neuron.stream(stream) as entered:
        assert entered is stream
        assert torch.neuron.current_device() == second_device
        assert torch.neuron.current_stream() == stream
    assert torch.neuron.current_device() == 0
    assert torch.neuron.current_stream(second_device) == torch.neuron.default_stream(second_device)
    with torch.neuron.stream(None):
        assert torch.neuron.current_stream() == torch.neuron.default_stream()


def test_many_streams_come_from_a_pool():
    identities = {torch.neuron.Stream().stream_id for _ in range(100)}
    assert len(identities) == 32
    assert identities.isdisjoint({torch.neuron.Stream(priority=-1).stream_id for _ in range(3)})


def test_work_on_a_side_stream_is_ordered_by_events():
    x = torch.full((1 << 16,), 1.0, device="neuron")
    side = torch.neuron.Stream()
    side.wait_stream(torch.neuron.current_stream())
    with torch.neuron.stream(side):
        for _ in range(10):
            x = x * 2
        done = side.record_event()
    torch.neuron.current_stream().wait_event(done)
    assert (x + 1).sum().item() == 1025.0 * (1 << 16)


def test_synchronize_and_query():
    stream = torch.neuron.Stream()
    with torch.neuron.stream(stream):
        x = torch.ones(1 << 16, device="neuron") * 3
    stream.synchronize()
    assert stream.query()
    event = stream.record_event()
    event.synchronize()
    assert event.query()
    assert x[0].item() == 3
    assert not stream.is_capturing()


def test_unrecorded_event_is_done_and_waits_for_nothing():
    event = torch.neuron.Event()
    assert event.query()
    event.wait(torch.neuron.current_stream())
    event.synchronize()


def test_elapsed_time():
    start, end = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    x = torch.ones(1 << 20, device="neuron")
    start.record()
    for _ in range(20):
        x = x * 1.5
    end.record()
    end.synchronize()
    elapsed = start.elapsed_time(end)
    assert 0 < elapsed < 60_000
    without = torch.neuron.Event()
    without.record()
    with pytest.raises((RuntimeError, ValueError)):
        start.elapsed_time(without)


def test_events_between_processes_are_refused():
    with pytest.raises(NotImplementedError, match="cannot be shared between processes"):
        torch.neuron.Event(interprocess=True)


def test_set_stream_by_id():
    stream = torch.neuron.Stream()
    torch.neuron._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
    assert torch.neuron.current_stream() == stream
    torch.neuron.set_stream(torch.neuron.default_stream())
    torch.neuron.set_stream(None)
    assert torch.neuron.current_stream() == torch.neuron.default_stream()


def test_current_stream_is_per_thread():
    stream = torch.neuron.Stream()
    seen = []
    with torch.neuron.stream(stream):
        thread = threading.Thread(target=lambda: seen.append(torch.neuron.current_stream().stream_id))
        thread.start()
        thread.join()
    assert seen == [0]


def test_two_threads_record_at_the_same_time():
    def chain(start: float, results: dict[float, float]) -> None:
        x = torch.full((257,), start, device="neuron")
        for _ in range(200):
            x = x + 1
            x = x * 0.5
        results[start] = x[13].item()

    results: dict[float, float] = {}
    threads = [threading.Thread(target=chain, args=(float(i), results)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for start, value in results.items():
        expected = torch.tensor(start)
        for _ in range(200):
            expected = (expected + 1) * 0.5
        assert value == expected.item()
    assert len(results) == 4


def test_record_stream_keeps_memory_for_the_side_stream():
    side = torch.neuron.Stream()
    for i in range(20):
        x = torch.full((4096,), float(i), device="neuron")
        side.wait_stream(torch.neuron.current_stream())
        with torch.neuron.stream(side):
            y = x * 2
        x.record_stream(side)
        del x
        z = torch.full((4096,), -1.0, device="neuron")
        side.synchronize()
        assert y[7].item() == 2.0 * i
        assert z[0].item() == -1.0


def test_backward_on_a_side_stream():
    x = torch.ones(64, device="neuron", requires_grad=True)
    side = torch.neuron.Stream()
    side.wait_stream(torch.neuron.current_stream())
    with torch.neuron.stream(side):
        (x * 3).sum().backward()
    side.synchronize()
    assert x.grad.tolist() == [3.0] * 64


@pytest.mark.parametrize(
    "wait",
    [
        torch.neuron.synchronize,
        torch.accelerator.synchronize,
        lambda: torch.neuron.current_stream().synchronize(),
        lambda: torch.neuron.current_stream().record_event().synchronize(),
    ],
)
def test_each_way_to_wait_raises_a_late_error_once_with_its_class(wait):
    weight = torch.ones(4, 2, device="neuron")
    result = torch.nn.functional.embedding(torch.tensor([9], device="neuron"), weight)
    with pytest.raises(IndexError, match="index out of range in self"):
        wait()
    torch.neuron.synchronize()
    # What the failed operation should have written stays poisoned, however it is looked at.
    for look in (result.cpu, result.data_ptr, lambda: torch.from_dlpack(result)):
        with pytest.raises(IndexError, match="index out of range in self"):
            look()
    assert (weight + 1).tolist() == [[2, 2]] * 4


def test_errors_reach_results_through_temporaries_that_are_gone():
    table, good = torch.ones(4, 3, device="neuron"), torch.ones(3, device="neuron")
    for _ in range(6):  # the memory of the temporaries is used again and again
        bad = torch.nn.functional.embedding(torch.tensor([9], device="neuron"), table)[0]
        results = [x + 1 for x in (good, bad, good)]
        results = [x * 2 for x in results]
        softened = torch.softmax(bad * 3, 0)  # not one kernel with its input
        with pytest.raises(IndexError):
            torch.neuron.synchronize()
        for result in (results[1], softened):
            with pytest.raises(IndexError, match="index out of range in self"):
                result.cpu()
        assert results[0].tolist() == results[2].tolist() == [4.0] * 3
