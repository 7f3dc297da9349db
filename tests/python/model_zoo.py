"""Small models of `transformers` with random weights: name -> a function that gives (model, inputs)."""

from __future__ import annotations

from collections.abc import Callable

import torch
import transformers as t

VOCABULARY = 96
Sample = tuple[t.PreTrainedModel, dict]

TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GROUPED = {**TEXT, "num_key_value_heads": 2}
VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 8,
}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
HALVES = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
FEED_FORWARD = {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64}


def tokens(batch: int = 2, length: int = 12, seed: int = 1) -> torch.Tensor:
    return torch.randint(1, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


def text_model(model: Callable, configuration: t.PreTrainedConfig) -> Sample:
    ids = tokens()
    return model(configuration), {"input_ids": ids, "labels": ids.clone()}


def image_model(model: Callable, configuration: t.PreTrainedConfig, size: int = 32) -> Sample:
    return model(configuration), {"pixel_values": numbers(3, 3, size, size), "labels": torch.tensor([0, 3, 4])}


def translation_model(model: Callable, configuration: t.PreTrainedConfig) -> Sample:
    return model(configuration), {"input_ids": tokens(), "labels": tokens(length=7, seed=3)}


def deepseek() -> Sample:
    configuration = t.DeepseekV3Config(
        **TEXT,
        num_key_value_heads=4,
        moe_intermediate_size=16,
        n_routed_experts=8,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
        n_shared_experts=1,
        first_k_dense_replace=1,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=8,
    )
    return text_model(t.DeepseekV3ForCausalLM, configuration)


def jamba() -> Sample:
    configuration = t.JambaConfig(
        **GROUPED,
        use_mamba_kernels=False,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        num_experts=2,
        mamba_d_state=8,
    )
    return text_model(t.JambaForCausalLM, configuration)


def whisper() -> Sample:
    configuration = t.WhisperConfig(
        vocab_size=VOCABULARY,
        num_mel_bins=8,
        d_model=32,
        **HALVES,
        **FEED_FORWARD,
        max_source_positions=16,
        max_target_positions=32,
        **ENDS,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = t.WhisperForConditionalGeneration(configuration)
    return model, {"input_features": numbers(2, 8, 32), "labels": tokens(length=7, seed=3)}


def bart() -> Sample:
    ends = {**ENDS, "decoder_start_token_id": 2, "forced_eos_token_id": 2}
    configuration = t.BartConfig(
        vocab_size=VOCABULARY, d_model=32, **HALVES, **FEED_FORWARD, max_position_embeddings=64, **ends
    )
    return translation_model(t.BartForConditionalGeneration, configuration)


def t5() -> Sample:
    configuration = t.T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    return translation_model(t.T5ForConditionalGeneration, configuration)


def hubert() -> Sample:
    configuration = t.HubertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        conv_dim=(16, 16),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        mask_time_prob=0.0,
        num_labels=3,
    )
    return t.HubertForSequenceClassification(configuration), {
        "input_values": numbers(2, 400),
        "labels": torch.tensor([0, 2]),
    }


def clip() -> Sample:
    configuration = t.CLIPConfig(text_config={**TEXT, **ENDS}, vision_config=VISION, projection_dim=16)
    inputs = {"input_ids": tokens(), "pixel_values": numbers(2, 3, 16, 16), "return_loss": True}
    return t.CLIPModel(configuration), inputs


def siglip() -> Sample:
    configuration = t.SiglipConfig(text_config={**TEXT, **ENDS, "projection_size": 32}, vision_config=VISION)
    inputs = {"input_ids": tokens(), "pixel_values": numbers(2, 3, 16, 16), "return_loss": True}
    return t.SiglipModel(configuration), inputs


def llava() -> Sample:
    image = VOCABULARY - 1
    configuration = t.LlavaConfig(
        vision_config={"model_type": "clip_vision_model", **VISION},
        text_config={"model_type": "llama", **TEXT},
        image_token_index=image,
        image_seq_length=4,
    )
    ids = tokens()
    ids[ids == image] = 1
    ids[:, 1:5] = image
    model = t.LlavaForConditionalGeneration(configuration)
    return model, {"input_ids": ids, "labels": ids.clone(), "pixel_values": numbers(2, 3, 16, 16)}


def segformer() -> Sample:
    configuration = t.SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[8, 16],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=16,
        num_labels=4,
    )
    labels = torch.randint(4, (2, 32, 32), generator=torch.Generator().manual_seed(3))
    return t.SegformerForSemanticSegmentation(configuration), {"pixel_values": numbers(2, 3, 32, 32), "labels": labels}


def swin() -> Sample:
    shape = {
        "image_size": 32,
        "patch_size": 4,
        "embed_dim": 16,
        "depths": [2, 2],
        "num_heads": [2, 4],
        "window_size": 4,
    }
    return image_model(t.SwinForImageClassification, t.SwinConfig(**shape, num_labels=5))


SHARED = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 32}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}

MODELS: dict[str, Callable[[], Sample]] = {
    "qwen3": lambda: text_model(t.Qwen3ForCausalLM, t.Qwen3Config(**GROUPED, head_dim=8)),
    "olmo2": lambda: text_model(t.Olmo2ForCausalLM, t.Olmo2Config(**GROUPED, pad_token_id=0, eos_token_id=2)),
    "gemma3": lambda: text_model(t.Gemma3ForCausalLM, t.Gemma3TextConfig(**GROUPED, head_dim=8, sliding_window=4)),
    "mixtral": lambda: text_model(t.MixtralForCausalLM, t.MixtralConfig(**GROUPED, num_local_experts=4)),
    "gpt-oss": lambda: text_model(
        t.GptOssForCausalLM, t.GptOssConfig(**GROUPED, **EXPERTS, head_dim=8, sliding_window=4)
    ),
    "deepseek-v3": deepseek,
    "mamba": lambda: text_model(
        t.MambaForCausalLM, t.MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=8)
    ),
    "t5": t5,
    "whisper": whisper,
    "clip": clip,
    "vit": lambda: image_model(
        t.ViTForImageClassification, t.ViTConfig(**{**VISION, "patch_size": 4}, num_labels=5), size=16
    ),
    "resnet": lambda: image_model(
        t.ResNetForImageClassification,
        t.ResNetConfig(embedding_size=8, hidden_sizes=[16, 24], depths=[2, 2], num_labels=5),
    ),
    "swin": swin,
    "segformer": segformer,
    "hubert": hubert,
    # From here on `make test-full` only.
    "qwen2": lambda: text_model(t.Qwen2ForCausalLM, t.Qwen2Config(**GROUPED)),
    "mistral": lambda: text_model(t.MistralForCausalLM, t.MistralConfig(**GROUPED, sliding_window=4)),
    "qwen3-moe": lambda: text_model(
        t.Qwen3MoeForCausalLM,
        t.Qwen3MoeConfig(**GROUPED, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16),
    ),
    "gemma2": lambda: text_model(t.Gemma2ForCausalLM, t.Gemma2Config(**GROUPED, head_dim=8, sliding_window=4)),
    "phi3": lambda: text_model(t.Phi3ForCausalLM, t.Phi3Config(**GROUPED, **ENDS)),
    "gpt-neox": lambda: text_model(t.GPTNeoXForCausalLM, t.GPTNeoXConfig(**TEXT)),
    "opt": lambda: text_model(
        t.OPTForCausalLM,
        t.OPTConfig(vocab_size=VOCABULARY, **SHARED, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32),
    ),
    "bloom": lambda: text_model(
        t.BloomForCausalLM, t.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)
    ),
    "falcon": lambda: text_model(t.FalconForCausalLM, t.FalconConfig(vocab_size=VOCABULARY, **SHARED)),
    "mamba2": lambda: text_model(
        t.Mamba2ForCausalLM,
        t.Mamba2Config(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=2,
            state_size=8,
            num_heads=4,
            head_dim=16,
            n_groups=1,
            chunk_size=8,
        ),
    ),
    "jamba": jamba,
    "cohere": lambda: text_model(t.CohereForCausalLM, t.CohereConfig(**GROUPED, **ENDS)),
    "roberta": lambda: text_model(
        t.RobertaForMaskedLM, t.RobertaConfig(**{**TEXT, "max_position_embeddings": 66}, pad_token_id=0)
    ),
    "albert": lambda: text_model(t.AlbertForMaskedLM, t.AlbertConfig(**TEXT, embedding_size=16)),
    "deberta-v2": lambda: text_model(
        t.DebertaV2ForMaskedLM,
        t.DebertaV2Config(**TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
    ),
    "modernbert": lambda: text_model(
        t.ModernBertForMaskedLM, t.ModernBertConfig(**TEXT, **ENDS, cls_token_id=1, sep_token_id=2, local_attention=8)
    ),
    "bart": bart,
    "siglip": siglip,
    "llava": llava,
    "dinov2": lambda: image_model(
        t.Dinov2ForImageClassification, t.Dinov2Config(**SHARED, image_size=16, patch_size=4, num_labels=5), size=16
    ),
    "convnext": lambda: image_model(
        t.ConvNextForImageClassification,
        t.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=5),
    ),
}
QUICK = list(MODELS)[: list(MODELS).index("qwen2")]
# Models that generate text from a prompt.
GENERATES = [
    *("qwen3", "olmo2", "gemma3", "mixtral", "gpt-oss", "deepseek-v3", "mamba", "t5", "whisper", "qwen2", "mistral"),
    *("qwen3-moe", "gemma2", "phi3", "gpt-neox", "opt", "bloom", "falcon", "mamba2", "jamba", "cohere", "bart"),
]
EXPERT_MODELS = {"mixtral", "gpt-oss", "deepseek-v3", "qwen3-moe", "jamba"}
