#include "neuron/eager/region_runner.h"

#include <algorithm>

#include "neuron/eager/interpreted_region.h"
#include "neuron/eager/region_space.h"
#include "neuron/eager/settings.h"
#include "neuron/eager/stream.h"

namespace neuron::eager {

template <typename F>
void RegionRunner::guarded(const Command& command, F&& body) {
  if (stream_.poisoned(command)) {
    stream_.skip(command);
    return;
  }
  try {
    body();
    stream_.succeed(command);
  } catch (const Error& error) {
    stream_.fail(command, error.kind(), error.what());
  } catch (const std::exception& error) {
    stream_.fail(command, ErrorKind::Internal, error.what());
  }
}

void RegionRunner::run(Window& window) {
  window_ = &window;
  try {
    planner_.plan(window, settings().fusion && settings().mode == Mode::Adaptive, plan_);
  } catch (const Error& error) {
    // Nothing of the window can be trusted: every output is poisoned with the planning error.
    for (const Command& command : window.commands) stream_.fail(command, error.kind(), error.what());
    return;
  }
  counters().regions += plan_.regions.size();
  for (const Region& region : plan_.regions) run_region(plan_, region);
}

void RegionRunner::run_region(const Plan& plan, const Region& region) {
  const PlannedCommand& first = plan.commands[region.commands[0]];
  switch (first.command->kind) {
    case CommandKind::Kernel:
      return guarded(*first.command, [&] { run_kernel(*first.command); });
    case CommandKind::Callback:
      return guarded(*first.command, [&] { run_callback(*first.command); });
    case CommandKind::Region:
      break;
  }
  bool any_stored = false;
  bool any_poisoned = false;
  for (int32_t index : region.commands) {
    const PlannedCommand& planned = plan.commands[index];
    for (bool stored : planned.stored) any_stored = any_stored || stored;
    any_poisoned = any_poisoned || stream_.poisoned(*planned.command);
  }
  if (!any_stored) {
    counters().dropped_commands += region.commands.size();
    return;
  }
  if (any_poisoned) return run_unfused(plan, region);
  if (region.commands.size() == 1) return guarded(*first.command, [&] { run_single(first, nullptr); });
  run_fused(plan, region);
}

void RegionRunner::run_fused(const Plan& plan, const Region& region) {
  commands_.clear();
  sources_.clear();
  local_index_.resize(plan.commands.size());
  size_t source_count = 0;
  for (int32_t index : region.commands) source_count += plan.commands[index].sources.size();
  sources_.reserve(source_count);
  int32_t local = 0;
  int threads = 1;
  for (int32_t index : region.commands) {
    local_index_[index] = local++;
    const PlannedCommand& planned = plan.commands[index];
    const Source* begin = sources_.data() + sources_.size();
    for (Source source : planned.sources) {
      sources_.push_back({source.command < 0 ? -1 : local_index_[source.command], source.output});
    }
    commands_.push_back({&planned, begin, nullptr});
    threads = std::max(threads, static_cast<int>(planned.command->threads));
  }
  const Command& last = *plan.commands[region.commands.back()].command;
  try {
    emitter_.bind(commands_, refined_space(region), region.reduction, false);
    KernelStore::Entry& entry = find_entry();
    if (!settings().interpret && KernelStore::ready(entry) == nullptr && !settings().synchronous_compile) {
      KernelStore::instance().request(entry, [&] { return emitter_.build_spec(commands_); });
      run_unfused(plan, region);
      return;
    }
    execute(commands_, entry, threads);
    for (const RegionCommand& entry : commands_) stream_.succeed(*entry.planned->command);
    counters().fused_commands += region.commands.size();
    counters().regions_run += 1;
  } catch (const Error& error) {
    for (int32_t index : region.commands) stream_.fail(*plan.commands[index].command, error.kind(), error.what());
  } catch (const std::exception& error) {
    stream_.fail(last, ErrorKind::Internal, error.what());
  }
}

KernelStore::Entry& RegionRunner::find_entry() {
  auto it = entries_.find(emitter_.key());
  if (it == entries_.end()) it = entries_.emplace(emitter_.key(), &KernelStore::instance().entry(emitter_.key())).first;
  return *it->second;
}

void RegionRunner::execute(std::span<const RegionCommand> commands, KernelStore::Entry& entry, int threads) {
  auto build = [&] { return emitter_.build_spec(commands); };
  if (settings().interpret) {
    interpret_region(*KernelStore::instance().spec(entry, build), emitter_.arguments(threads));
    return;
  }
  const codegen::Executable* executable = KernelStore::ready(entry);
  if (executable == nullptr) executable = &KernelStore::instance().compile(entry, build);
  executable->run(emitter_.arguments(threads));
}

void RegionRunner::run_single(const PlannedCommand& planned, char* const* data) {
  static constexpr Source kMemory{};
  Source none[64];
  std::fill(none, none + std::min<size_t>(64, planned.command->input_count), kMemory);
  check_internal(planned.command->input_count <= 64, "{}: more than 64 inputs", planned.command->name());
  RegionCommand single{&planned, none, data};
  std::span<const RegionCommand> commands(&single, 1);
  emitter_.bind(commands, planned.canonical.space, planned.canonical.reduction, true);
  execute(commands, find_entry(), planned.command->threads);
  counters().regions_run += 1;
}

// One kernel per command. Values that the plan keeps out of memory go to scratch instead: their recorded addresses may
// already belong to a later tensor.
void RegionRunner::run_unfused(const Plan& plan, const Region& region) {
  struct Slot {
    int32_t command, output;
    size_t offset;
  };
  std::vector<Slot> slots;
  size_t total = 0;
  for (int32_t index : region.commands) {
    const PlannedCommand& planned = plan.commands[index];
    for (int o = 0; o < planned.command->output_count; ++o) {
      if (planned.stored[o]) continue;
      const Operand& operand = planned.command->operands[o];
      slots.push_back({index, o, total});
      total += (operand.high - operand.low + 63) & ~size_t{63};
    }
  }
  std::vector<char> scratch(total + 64);
  char* base = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
  auto scratch_of = [&](int32_t command, int32_t output) -> char* {
    for (const Slot& slot : slots) {
      if (slot.command == command && slot.output == output) return base + slot.offset;
    }
    return nullptr;
  };
  for (int32_t index : region.commands) {
    const PlannedCommand& planned = plan.commands[index];
    const Command& command = *planned.command;
    SmallVector<char*, 16> data(command.output_count + command.input_count, nullptr);
    for (int o = 0; o < command.output_count; ++o) {
      if (char* memory = scratch_of(index, o)) data[o] = memory + (command.operands[o].data - command.operands[o].low);
    }
    for (int i = 0; i < command.input_count; ++i) {
      const Source& source = planned.sources[i];
      if (source.command < 0) continue;
      const Operand& operand = command.inputs()[i];
      if (char* memory = scratch_of(source.command, source.output)) {
        data[command.output_count + i] = memory + (operand.data - operand.low);
      }
    }
    guarded(command, [&] { run_single(planned, data.data()); });
  }
}

void RegionRunner::run_kernel(const Command& command) {
  std::vector<kernels::TensorView> outputs, inputs;
  auto view = [](const Operand& operand) {
    kernels::TensorView result;
    result.data = operand.data;
    result.dtype = operand.dtype;
    result.sizes.assign(operand.sizes, operand.sizes + operand.rank);
    result.strides.assign(operand.strides, operand.strides + operand.rank);
    return result;
  };
  for (const Operand& operand : command.outputs()) outputs.push_back(view(operand));
  for (const Operand& operand : command.inputs()) inputs.push_back(view(operand));
  command.kernel->run({outputs, inputs, std::span(command.attributes, command.attribute_count),
                       std::span(command.scalars, command.scalar_count), command.threads});
}

void RegionRunner::run_callback(const Command& command) { window_->callbacks[command.callback](); }

}  // namespace neuron::eager
