"""Forked children: clean before the first use of the device, one clear error after it, and nothing breaks at their exit."""

from __future__ import annotations


def test_child_forked_before_use_starts_clean(run_python):
    result = run_python("""
        import os, torch
        child = os.fork()
        if child == 0:
            assert not torch.neuron._is_in_bad_fork()
            os._exit(0 if (torch.ones(3, device="neuron") + 1).tolist() == [2, 2, 2] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print((torch.ones(3, device="neuron") * 5).tolist())
    """)
    assert result.stdout == "[5.0, 5.0, 5.0]\n", result


def test_child_forked_after_use_gets_one_clear_error(run_python):
    result = run_python("""
        import os, sys, torch
        x = torch.ones(1000, device="neuron") + 1
        print(x[0].item(), flush=True)
        child = os.fork()
        if child == 0:
            assert torch.neuron._is_in_bad_fork() and not torch.neuron.is_initialized()
            assert torch.neuron.is_available() and torch.neuron.device_count() == 4
            for action in (
                lambda: torch.ones(2, device="neuron"),
                lambda: x + 1,
                lambda: x.cpu(),
                lambda: torch.neuron.synchronize(),
                lambda: torch.neuron.Stream(),
            ):
                try:
                    action()
                except RuntimeError as error:
                    assert "Cannot re-initialize neuron in a forked" in str(error), error
                else:
                    os._exit(3)
            torch.manual_seed(1)   # does not raise
            del x                  # the deleter does nothing
            sys.exit(0)            # a full interpreter exit
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print((x * 2)[0].item())
    """)
    assert result.stdout == "2.0\n4.0\n" and result.returncode == 0, result


def test_child_may_compute_on_the_cpu(run_python):
    result = run_python("""
        import os, torch
        x = torch.ones(10, device="neuron").cpu()
        child = os.fork()
        if child == 0:
            os._exit(0 if (x + 1).tolist() == [2] * 10 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)
    assert result.returncode == 0, result


def test_data_loader_workers_after_use(run_python):
    result = run_python("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        x = torch.ones(4, device="neuron")
        data = TensorDataset(torch.arange(32.0))
        total = 0.0
        for (batch,) in DataLoader(data, batch_size=8, num_workers=2):
            total += batch.to("neuron").sum().item()
        print(total)
    """)
    assert result.stdout == "496.0\n" and result.returncode == 0, result


def test_spawned_process_may_use_the_device(run_python, tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        "import torch\n"
        "import torch.multiprocessing as processes\n"
        "def work(rank, results):\n"
        "    results.put((torch.full((2,), float(rank), device='neuron') + 1).tolist())\n"
        "if __name__ == '__main__':\n"
        "    torch.ones(2, device='neuron')\n"
        "    context = processes.get_context('spawn')\n"
        "    results = context.Queue()\n"
        "    child = context.Process(target=work, args=(1, results))\n"
        "    child.start()\n"
        "    print(results.get(timeout=100))\n"
        "    child.join()\n"
        "    print(child.exitcode)\n"
    )
    result = run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert result.stdout == "[2.0, 2.0]\n0\n", result
