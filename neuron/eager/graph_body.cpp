#include "neuron/eager/graph_body.h"

#include <unordered_map>
#include <unordered_set>

#include "neuron/base/error.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/device.h"

namespace neuron::eager {

bool runtime_computes() { return runtime::driver().computes(); }

namespace {

struct SentinelSeeds {
  std::mutex mutex;
  std::unordered_set<uint64_t> seeds;
};

SentinelSeeds& sentinel_seeds() {
  static auto* instance = new SentinelSeeds();
  return *instance;
}

}  // namespace

void note_sentinel_seed(uint64_t seed) {
  SentinelSeeds& all = sentinel_seeds();
  std::lock_guard lock(all.mutex);
  all.seeds.insert(seed);
}

void GraphBody::index(std::span<const CommandGraph::RandomUse> uses, std::string& failure) {
  std::vector<uint64_t> seeds_found(uses.size(), 0);
  std::unordered_set<uint64_t> foreign_seeds;
  {
    SentinelSeeds& all = sentinel_seeds();
    std::lock_guard lock(all.mutex);
    foreign_seeds = all.seeds;
  }
  for (const CommandGraph::RandomUse& use : uses) foreign_seeds.erase(use.sentinel.seed);
  bool crosses = false;
  auto consider = [&](uint64_t* word) {
    crosses = crosses || foreign_seeds.contains(*word);
    for (uint32_t u = 0; u < uses.size(); ++u) {
      const CommandGraph::RandomUse& use = uses[u];
      if (*word == use.sentinel.seed) {
        random_places.push_back({word, u, true, 0});
        ++seeds_found[u];
      } else if (*word - use.sentinel.offset < use.count) {
        random_places.push_back({word, u, false, *word - use.sentinel.offset});
      }
    }
  };
  std::unordered_set<const runtime::Block*> seen;
  std::unordered_set<runtime::Block*> stored;
  for (auto& window : windows) {
    command_count += window->length();
    for (Command& command : window->commands) {
      if (command.kind == CommandKind::Region) region_command_count += command.items;
      if (command.kind == CommandKind::Kernel) ++kernel_command_count;
      const std::span<Operand> operands = command.all_operands();
      for (size_t i = 0; i < operands.size(); ++i) {
        Operand& operand = operands[i];
        if (operand.kind != codegen::OperandKind::Tensor) {
          if (!uses.empty() || !foreign_seeds.empty()) consider(&operand.scalar);
          continue;
        }
        if (operand.block == nullptr || operand.low == operand.high) continue;
        if (command.is_output(i)) stored.insert(operand.block);
        if (operand.block->stream != pool->stream().id() && seen.insert(operand.block).second)
          externals.push_back({operand.block, operand.generation, &command});
      }
      if (uses.empty() && foreign_seeds.empty()) continue;
      // The arena's memory is the window's own.
      for (int a = 0; a < command.attribute_count; ++a)
        consider(reinterpret_cast<uint64_t*>(const_cast<int64_t*>(&command.attributes[a])));
      for (int s = 0; s < command.scalar_count; ++s) consider(&const_cast<Scalar*>(command.scalars)[s].bits);
    }
  }
  written.assign(stored.begin(), stored.end());
  if (crosses && failure.empty()) {
    failure =
        "an operation takes up random numbers of an operation in another capture, as the gradient of attention with "
        "dropout does. Capture both in one graph";
  }
  for (size_t u = 0; u < uses.size() && failure.empty(); ++u) {
    if (seeds_found[u] < uses[u].reservations) {
      failure = fmt::format(
          "{} of {} random operations do not take their numbers from the generator when they run, so that every replay "
          "would give the same numbers",
          uses[u].reservations - seeds_found[u], uses[u].reservations);
    }
  }
}

void GraphBody::fill_random(std::span<const RandomState> states) {
  for (const RandomPlace& place : random_places) {
    const RandomState& state = states[place.use];
    *place.word = place.seed ? state.seed : state.offset + place.delta;
  }
}

void GraphBody::check_memory() const {
  for (const External& external : externals) {
    if (external.block->generation.load(std::memory_order_relaxed) == external.generation) continue;
    fail(
        ErrorKind::Runtime,
        "the graph uses memory that was freed after the capture: operation #{} {} of the capture read or wrote it. "
        "Keep the tensors that a graph uses (inputs, parameters, buffers) alive and in place as long as it is replayed",
        external.command->sequence & ~kCapturedSequence, external.command->name());
  }
}

std::string GraphBody::dot() const {
  std::string text = "digraph commands {\n  rankdir=TB; node [shape=box];\n";
  // Last writer of each block and generation: edges are data flow, told by memory.
  std::unordered_map<const runtime::Block*, std::string> writers;
  for (size_t w = 0; w < windows.size(); ++w) {
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"window {}\";\n", w, w);
    std::string edges;
    for (size_t c = 0; c < windows[w]->commands.size(); ++c) {
      const Command& command = windows[w]->commands[c];
      std::string node = fmt::format("c{}_{}", w, c), shape;
      if (command.output_count > 0) {
        const Operand& output = command.operands[0];
        for (int d = 0; d < output.rank; ++d) shape += fmt::format("{}{}", d ? ", " : "", output.sizes[d]);
        shape = fmt::format("\\n{}[{}]", dtype_name(output.dtype), shape);
      }
      text += fmt::format("    {} [label=\"{}{}\"];\n", node, command.name(), shape);
      const std::span<const Operand> operands = command.all_operands();
      for (size_t i = 0; i < operands.size(); ++i) {
        auto writer = writers.find(operands[i].block);
        if (!command.is_output(i) && operands[i].block != nullptr && writer != writers.end())
          edges += fmt::format("  {} -> {};\n", writer->second, node);
      }
      for (size_t i = 0; i < operands.size(); ++i) {
        if (command.is_output(i) && operands[i].block != nullptr) writers[operands[i].block] = node;
      }
    }
    text += "  }\n" + edges;
  }
  return text + "}\n";
}

}  // namespace neuron::eager
