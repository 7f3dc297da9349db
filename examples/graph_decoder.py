"""Generation at the speed of memory, for any causal language model of `transformers` on the neuron device.

    decoder = GraphDecoder(model)                              # the model as from_pretrained() gives it, on the device
    answer = decoder.generate(prompt, max_new_tokens=100)      # lists of token numbers
    for token in decoder.stream(prompt + answer + question, max_new_tokens=100, temperature=0.7):
        ...                                                    # each as soon as it is known

A decoding step of a small model is hundreds of operations of a few microseconds, and Python and torch need more time to ask
for them than the device to run them. Here the model's forward pass of one token, the selection of the next one and the
step to the next position are captured as a `torch.accelerator.Graph` once, and each further token is one replay: the host
does nothing but read the token. The model is not changed; what makes its step replayable is the cache it is given, whose
memory stays where it is:

- A prompt runs eagerly, as `model.generate` runs it, and writes its keys and values into that memory.
- Each step writes at a position that is a tensor, and attends to a window over the beginning of the memory under the
  model's own causal mask. The window is as many tokens as there are, rounded up to a multiple of 128; a wider one is a
  new capture, which takes about as long as two steps.
- Memory is for a power of two of tokens, from 512 on. When it is full it is copied to twice as much.

What two calls have in common at their beginning is not computed again: a conversation goes on where it was by passing all
of its tokens.

Limits: one sequence at a time, layers of attention only (a state space has nothing that grows), and a forward pass that
asks for no values on the host; a model with another one says so when its step is captured. Sampling knows temperature and
top-k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import transformers
from transformers.cache_utils import CacheLayerMixin, get_layer_types_and_kwargs

SMALLEST, WINDOW = 512, 128
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention", "dummy"}


class GraphCache(transformers.Cache):
    """Keys and values in memory that stays in place: `length` tokens in memory for `capacity`.

    In a capture `window` is a number of tokens: updates write one token at `position`, a tensor, and give the first
    `window` ones of the memory. Outside it is None: updates write behind `length` tokens and give what there is then.
    """

    def __init__(self, device: torch.device):
        super().__init__(layer_class_to_replicate=lambda: GraphLayer(self))
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.capacity = 0
        self.length = 0
        self.window: int | None = None

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for layer in self.layers:
            layer.grow()


class GraphLayer(CacheLayerMixin):
    is_sliding = False  # a window is the mask's affair: all keys are kept

    def __init__(self, cache: GraphCache):
        super().__init__()
        self.cache = cache

    @property
    def is_compileable(self) -> bool:
        """Whether the model has to build its mask from tensors."""
        return self.cache.window is not None

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = self.memory(key_states), self.memory(value_states)
        self.is_initialized = True

    def memory(self, states: torch.Tensor) -> torch.Tensor:
        """Zeros: what the mask excludes is multiplied by zero, and must be a number for that."""
        batch, heads, _, width = states.shape
        return states.new_zeros(batch, heads, self.cache.capacity, width)

    def grow(self) -> None:
        if not self.is_initialized:
            return
        for name in ("keys", "values"):
            old = getattr(self, name)
            new = self.memory(old)
            new[:, :, : self.cache.length] = old[:, :, : self.cache.length]
            setattr(self, name, new)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if (window := self.cache.window) is not None:
            self.keys.index_copy_(2, self.cache.position, key_states)
            self.values.index_copy_(2, self.cache.position, value_states)
            return self.keys[:, :, :window], self.values[:, :, :window]
        begin, end = self.cache.length, self.cache.length + key_states.shape[2]
        self.keys[:, :, begin:end] = key_states
        self.values[:, :, begin:end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        window = self.cache.window
        return (self.cache.length + query_length if window is None else window), 0

    def get_seq_length(self) -> int | torch.Tensor:
        return self.cache.length if self.cache.window is None else self.cache.position[0]

    def get_max_length(self) -> int:
        return self.cache.capacity


class GraphDecoder:
    """Generates with `model`, a causal language model of transformers on a device that has graphs.

    `tokens`: the numbers whose keys and values are kept. `logits`, [1, vocabulary]: those of the last step or prompt, in
    float32; the next step overwrites them.
    """

    def __init__(self, model: transformers.PreTrainedModel):
        if model.device.type == "cpu":
            raise ValueError(
                "the model is on the CPU, where torch has no graphs: use model.generate(), or move the model"
            )
        kinds = set(get_layer_types_and_kwargs(model.config.get_text_config(decoder=True))[0])
        if not kinds <= ATTENTION:
            raise ValueError(
                f"{type(model).__name__} has layers of kind {', '.join(sorted(kinds - ATTENTION))}; only attention "
                f"({', '.join(sorted(ATTENTION - {'dummy'}))}) can be captured: use model.generate()"
            )
        self.model = model
        self.tokens: list[int] = []
        self.cache = GraphCache(model.device)
        self.graphs: dict[tuple[bool, int], torch.accelerator.Graph] = {}  # by what `select` takes
        self.window = 0  # of the graphs
        self.token = torch.zeros(1, 1, dtype=torch.int64, device=model.device)
        self.temperature = torch.ones((), device=model.device)
        vocabulary = model.get_output_embeddings().weight.shape[0]
        self.logits = torch.zeros(1, vocabulary, device=model.device)

    def generate(self, tokens: Sequence[int], max_new_tokens: int, **options) -> list[int]:
        """The tokens that follow `tokens`; see `stream`."""
        return list(self.stream(tokens, max_new_tokens, **options))

    def stream(
        self,
        tokens: Sequence[int],
        max_new_tokens: int,
        *,
        temperature: float = 0.0,
        top_k: int = 50,
        stop: Sequence[int] | None = None,
    ) -> Iterator[int]:
        """Yields the tokens that follow `tokens`: at most `max_new_tokens`, and none after one of `stop` (by default the
        model's own ends of text; empty: never ends early).

        A temperature of 0 takes the most likely token. Another one samples among the `top_k` most likely (0: all), with
        the numbers that `torch.manual_seed` determines; the tokens are those of `generate(do_sample=True)`.
        """
        if temperature < 0 or top_k < 0:
            raise ValueError(f"temperature is {temperature} and top_k {top_k}; neither can be negative")
        if stop is None:
            ends = self.model.generation_config.eos_token_id
            stop = [] if ends is None else [ends] if isinstance(ends, int) else ends
        if max_new_tokens < 1:
            return
        sampling = (temperature > 0, top_k if temperature > 0 else 0)
        self.temperature.fill_(temperature or 1.0)
        self.read(tokens)
        with torch.inference_mode():
            self.token.copy_(self.select(*sampling))
        for left in reversed(range(max_new_tokens)):
            token = int(self.token)
            last = left == 0 or token in stop
            if not last:
                self.step(token, sampling)  # runs while the caller looks at the token
            yield token
            if last:
                return

    @torch.inference_mode()
    def score(self, tokens: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
        """The logits, [answer, vocabulary], of each token of `answer` after `tokens` and the answer before it; one replay
        a token, as in generation."""
        rows = [self.read(tokens).clone()]
        rows += [self.force(token).clone() for token in answer[:-1]]
        return torch.cat(rows)

    @torch.inference_mode()
    def force(self, token: int) -> torch.Tensor:
        """Goes on by `token`, whatever the last step selected, and gives `logits`."""
        self.token.fill_(token)
        return self.step(token)

    @torch.inference_mode()
    def go_back(self, length: int) -> None:
        """Keeps the first `length` tokens. 0: the next prompt is computed from its beginning."""
        if length > len(self.tokens):
            raise ValueError(f"there are {len(self.tokens)} tokens, fewer than {length}")
        del self.tokens[length:]
        self.cache.length = length
        self.cache.position.fill_(length)

    def read(self, tokens: Sequence[int]) -> torch.Tensor:
        """Makes `tokens` those that are kept and gives `logits` of the one after them. Computes what is new, and at least
        the last token."""
        if len(tokens) == 0:
            raise ValueError("there are no tokens to go on from")
        kept = 0
        for ours, theirs in zip(self.tokens, tokens[:-1], strict=False):
            if ours != theirs:
                break
            kept += 1
        self.go_back(kept)
        self.make_room(len(tokens))
        with torch.inference_mode():
            added = torch.tensor([tokens[kept:]], device=self.model.device)
            self.forward(added, torch.arange(kept, len(tokens), device=self.model.device)[None])
            self.cache.position.fill_(len(tokens))
        self.tokens = list(tokens)
        self.cache.length = len(tokens)
        return self.logits

    def step(self, token: int, sampling: tuple[bool, int] = (False, 0)) -> torch.Tensor:
        """Goes on by `token`, which the device has in `self.token`: a replay, after which that is the next token."""
        length = len(self.tokens) + 1
        self.make_room(length)
        window = min(-(-length // WINDOW) * WINDOW, self.cache.capacity)
        if window != self.window:
            self.graphs.clear()
            self.window = window
        if sampling not in self.graphs:
            self.graphs[sampling] = self.capture(*sampling)
        self.graphs[sampling].replay()
        self.tokens.append(token)
        self.cache.length = length
        return self.logits

    def make_room(self, length: int) -> None:
        if length > self.cache.capacity:
            self.graphs.clear()  # they work on the old memory
            with torch.inference_mode():
                self.cache.grow(max(SMALLEST, 1 << (length - 1).bit_length()))

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None = None) -> None:
        result = self.model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.logits.copy_(result.logits[:, -1])

    def select(self, sampled: bool, top_k: int) -> torch.Tensor:
        if not sampled:
            return self.logits.argmax(dim=-1, keepdim=True)
        scores = self.logits / self.temperature
        if top_k:
            least = scores.topk(min(top_k, scores.shape[-1])).values[:, -1:]
            scores = scores.masked_fill(scores < least, -torch.inf)
        return torch.multinomial(scores.softmax(dim=-1), 1)

    def capture(self, sampled: bool, top_k: int) -> torch.accelerator.Graph:
        graph = torch.accelerator.Graph()
        self.cache.window = self.window
        position = self.cache.position
        try:
            with torch.inference_mode(), graph:
                # Which tokens there are: some models would make this from the length, as a number, themselves.
                present = torch.arange(self.window, device=position.device) <= position
                self.forward(self.token, position[None], present.long()[None])
                self.token.copy_(self.select(sampled, top_k))
                position.add_(1)
        finally:
            self.cache.window = None
        return graph
