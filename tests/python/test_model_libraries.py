"""Libraries around models, unmodified: Trainer, peft, accelerate and diffusers in this process, torchvision and timm in
one of their own (`make test-full` installs them)."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torch_neuronx
from model_zoo import tokens
from test_model_zoo import make

pytestmark = pytest.mark.slow
VISION = Path(sys.prefix) / "vision"


@pytest.fixture(autouse=True)
def nothing_on_the_cpu():
    torch_neuronx.clear_op_tracking()
    yield
    assert sorted(set(torch_neuronx.get_fallback_ops())) == []


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


def parity(model, call) -> None:
    """`call(model, device, dtype)` gives a tensor: its value and every gradient of its mean square against float64."""

    def run(device, dtype):
        copied = copy.deepcopy(model).to(device=device, dtype=dtype)
        output = call(copied, device, dtype)
        output.float().square().mean().backward() if dtype != torch.float64 else output.square().mean().backward()
        results = {"output": output.detach()}
        results |= {name: p.grad for name, p in copied.named_parameters() if p.grad is not None}
        return {name: value.cpu().double() for name, value in results.items()}

    exact, cpu, ours = run("cpu", torch.float64), run("cpu", torch.float32), run("neuron", torch.float32)
    assert ours.keys() == exact.keys()
    for name, value in exact.items():
        scale = max(value.abs().max().item(), 1e-3)
        allowed = 3 * (cpu[name] - value).abs().max().item() + 2e-6 * scale
        assert (ours[name] - value).abs().max().item() <= allowed, name


def test_trainer(tmp_path):
    """Three steps of `Trainer`: the losses of the CPU."""
    pytest.importorskip("accelerate")
    import transformers

    rows = [{"input_ids": row, "labels": row} for row in tokens(4).tolist() * 3]

    def losses(device):
        model, _ = make("qwen3")
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / device),
            max_steps=3,
            per_device_train_batch_size=4,
            learning_rate=1e-2,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=device == "cpu",
            disable_tqdm=True,
            seed=0,
        )
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
        trainer.train()
        assert next(model.parameters()).device.type == device
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    ours, theirs = losses("neuron"), losses("cpu")
    assert len(ours) == 3
    assert ours == pytest.approx(theirs, abs=2e-4)
    assert ours[-1] < ours[0]


def test_lora():
    peft = pytest.importorskip("peft")
    model, inputs = make("qwen3")
    torch.manual_seed(0)
    model = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_dropout=0.0, target_modules=["q_proj", "v_proj"]))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=0.1)
    parity(model, lambda m, device, dtype: m(input_ids=inputs["input_ids"].to(device)).logits)


def test_accelerate(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)  # of a Trainer on the CPU
    model, inputs = make("qwen3")
    accelerator = accelerate.Accelerator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer = accelerator.prepare(model, optimizer)
    assert accelerator.device.type == "neuron"
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(**{name: value.to(accelerator.device) for name, value in inputs.items()}).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1
    kept, drawn = copy.deepcopy(model.state_dict()), torch.rand(3, device="neuron")
    accelerator.save_state(tmp_path)
    expected = torch.rand(3, device="neuron")
    for parameter in model.parameters():
        parameter.data.zero_()
    accelerator.load_state(tmp_path)
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.rand(3, device="neuron"), expected)
    assert not torch.equal(drawn, expected)


def test_unet():
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    model = diffusers.UNet2DModel(
        sample_size=16,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    steps = torch.tensor([1, 3])
    parity(model, lambda m, device, dtype: m(numbers(2, 3, 16, 16).to(device, dtype), steps.to(device)).sample)


def test_autoencoder():
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    model = diffusers.AutoencoderKL(block_out_channels=(16, 32), norm_num_groups=8, **blocks)
    parity(model, lambda m, device, dtype: m(numbers(1, 3, 16, 16).to(device, dtype)).sample)


def test_diffusion_transformer():
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=16, in_channels=4, num_layers=2, sample_size=8, num_embeds_ada_norm=10
    ).eval()
    steps, labels = torch.tensor([1, 3]), torch.tensor([1, 7])

    def call(m, device, dtype):
        x = numbers(2, 4, 8, 8).to(device, dtype)
        return m(x, timestep=steps.to(device), class_labels=labels.to(device)).sample

    parity(model, call)


def test_diffusion_pipeline():
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    unet = diffusers.UNet2DModel(
        sample_size=8,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )
    images = {}
    for device in ("cpu", "neuron"):
        pipeline = diffusers.DDPMPipeline(copy.deepcopy(unet), diffusers.DDPMScheduler(num_train_timesteps=50)).to(
            device
        )
        pipeline.set_progress_bar_config(disable=True)
        generator = torch.Generator().manual_seed(1)
        images[device] = pipeline(generator=generator, num_inference_steps=3, output_type="np").images
    assert abs(images["neuron"] - images["cpu"]).max() < 1e-4


@pytest.mark.skipif(not (VISION / "torchvision").exists(), reason="torchvision and timm are not installed")
@pytest.mark.parametrize(
    "model",
    [
        *("torchvision:resnet50", "torchvision:vit", "torchvision:mobilenet_v3_small", "torchvision:convnext_tiny"),
        *("torchvision:swin_t", "torchvision:efficientnet_b0", "torchvision:densenet", "timm:resnet50", "timm:vit"),
        *("timm:convnext_atto", "timm:swin"),
    ],
)
def test_vision(model):
    """Evaluation and a training step with SGD; the program compares with float64 and counts fallbacks."""
    program = Path(__file__).with_name("vision_program.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(VISION), os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run(
        [sys.executable, str(program), model], env=environment, capture_output=True, text=True, timeout=900
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("agrees with float64") == 2
