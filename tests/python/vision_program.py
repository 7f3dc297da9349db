"""A model of torchvision or timm on the device: `python vision_program.py torchvision:resnet50`. In a process of its own,
with the directory of the two on the path: torchvision's compiled operators do not load beside a torch without CUDA, so
their schemas are declared here before it is imported. Models need none of them."""

from __future__ import annotations

import copy
import sys

import torch

BOXES = "Tensor input, Tensor rois"
POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, "
    "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({BOXES}, {POOLED}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, Tensor rois, {POOLED}, {SHAPE}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({BOXES}, {POOLED}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {POOLED}, {SHAPE}) -> Tensor",
    f"ps_roi_align({BOXES}, {POOLED}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor mapping, {POOLED}, int sampling_ratio, {SHAPE}) -> Tensor",
    f"ps_roi_pool({BOXES}, {POOLED}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor mapping, {POOLED}, {SHAPE}) -> Tensor",
    f"deform_conv2d({CONVOLUTION}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {CONVOLUTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


def make(name: str) -> tuple[torch.nn.Module, int]:
    """The model with ten classes, and the size of its images."""
    library, _, model = name.partition(":")
    if library == "timm":
        import timm

        known = {
            "vit": ("vit_tiny_patch16_224", 32, {"img_size": 32, "patch_size": 8}),
            "swin": ("swin_tiny_patch4_window7_224", 56, {"img_size": 56}),
        }
        full, size, options = known.get(model, (model, 64, {}))
        return timm.create_model(full, num_classes=10, **options), size
    from torchvision import models

    if model == "vit":
        return models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10), 32
    if model == "densenet":
        return models.DenseNet(8, (2, 2), 16, num_classes=10), 64
    return getattr(models, model)(weights=None, num_classes=10), 64


def without_randomness(model: torch.nn.Module) -> torch.nn.Module:
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout) or type(module).__name__ in ("StochasticDepth", "DropPath"):
            module.p = module.drop_prob = 0.0
    return model


def step(
    model: torch.nn.Module, images, labels, device: str, dtype: torch.dtype, train: bool
) -> dict[str, torch.Tensor]:
    """Output, loss, gradients, and the state after a step of SGD, as float64 on the CPU."""
    model = copy.deepcopy(model).to(device, dtype).train(train)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    output = model(images.to(device, dtype))
    loss = torch.nn.functional.cross_entropy(output, labels.to(device))
    loss.backward()
    results = {"output": output.detach(), "loss": loss.detach()}
    results |= {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    optimizer.step()
    results |= {f"{name} after": value.detach() for name, value in model.state_dict().items()}
    return {name: value.cpu().double() for name, value in results.items()}


def relative_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    return ((actual - exact).norm() / exact.norm().clamp(min=1e-4)).item()


def main() -> int:
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
    import torch_neuronx

    torch.manual_seed(0)
    model, size = make(sys.argv[1])
    without_randomness(model)
    images = torch.randn(2, 3, size, size)
    labels = torch.tensor([3, 7])
    for train in (False, True):
        exact = step(model, images, labels, "cpu", torch.float64, train)
        cpu = step(model, images, labels, "cpu", torch.float32, train)
        torch_neuronx.clear_op_tracking()
        ours = step(model, images, labels, "neuron", torch.float32, train)
        fallbacks = sorted(set(torch_neuronx.get_fallback_ops()))
        # Batch normalisation over the few positions of small images amplifies rounding, differently in each tensor: the
        # measure is the CPU's worst one.
        errors = {name: relative_error(ours[name], value) for name, value in exact.items()}
        allowed = 3 * max(relative_error(cpu[name], value) for name, value in exact.items()) + 1e-5
        wrong = [
            f"{name}: {error:.1e}, allowed {allowed:.1e}" for name, error in errors.items() if not error <= allowed
        ]
        if fallbacks or wrong or ours.keys() != exact.keys():
            print(f"{'training' if train else 'evaluation'}: on the CPU {fallbacks}, wrong {wrong[:5]} of {len(exact)}")
            return 1
        print(f"{'training' if train else 'evaluation'}: agrees with float64")
    return 0


if __name__ == "__main__":
    sys.exit(main())
