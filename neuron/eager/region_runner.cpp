#include "neuron/eager/region_runner.h"

#include <algorithm>
#include <new>

#include "neuron/eager/interpreted_region.h"
#include "neuron/eager/profile.h"
#include "neuron/eager/region_space.h"
#include "neuron/eager/settings.h"
#include "neuron/eager/stream.h"

namespace neuron::eager {

namespace {

// Inputs of a command that runs alone come from memory.
constexpr Source kNoSources[64] = {};

Command command_at(const Window& window, Expansion::Place place) {
  return window.commands[place.command].item(static_cast<uint32_t>(place.item));
}

}  // namespace

template <typename F>
void RegionRunner::guarded(const Command& command, F&& body) {
  if (const Cause cause = stream_.blocking(command)) {
    preparing_.reset();
    return stream_.skip(command, cause);
  }
  try {
    body();
  } catch (...) {
    preparing_.reset();
    return stream_.fail(command);
  }
  if (stream_.any_poison()) [[unlikely]]
    stream_.succeed(command);
}

template <typename Commands, typename F>
void RegionRunner::fail_all(const Commands& commands, F&& command_of) {
  preparing_.reset();
  for (const auto& item : commands) stream_.fail(command_of(item));
}

void RegionRunner::run(Window& window) noexcept {
  window_ = &window;
  preparing_.reset();
  const bool fusing = settings().fusion && settings().mode == Mode::Adaptive;
  WindowSignature signature;
  const PreparedWindow* prepared = nullptr;
  const Window* expanded = nullptr;
  try {
    if (fusing && !settings().interpret) {
      signature = signatures_.build(window);
      bool again = false;
      prepared = prepared_windows_.find(signature, window, signatures_, again);
      if (prepared == nullptr && again) {
        preparing_ = std::make_unique<PreparedWindow>();
        preparing_->fusing = fusing;
      }
    }
    if (prepared == nullptr) {
      expanded = &expansion_.expand(window);
      planner_.plan(*expanded, fusing, plan_);
      if (profiling()) profile_window(window);
    }
  } catch (...) {
    preparing_.reset();
    for (const Command& command : window.commands) {
      for (uint32_t item = 0; item < command.items; ++item) stream_.fail(command.item(item));
    }
    return;
  }
  if (prepared != nullptr) return replay(*prepared, window);
  counters().regions += plan_.regions.size();
  profile_counters().plan_misses += 1;
  for (const Region& region : plan_.regions) run_region(plan_, region);
  try {
    count_not_fused();
    if (preparing_) {
      preparing_->one_layout = !find_reuse_hazards(plan_, *expanded, preparing_->hazards);
      for (ReuseHazard& hazard : preparing_->hazards) {
        expansion_.locate(hazard.earlier, hazard.earlier_operand, window);
        expansion_.locate(hazard.later, hazard.later_operand, window);
      }
      if (preparing_->one_layout) preparing_->memory = signatures_.memory();
      prepared_windows_.store(signature, std::move(preparing_));
    }
  } catch (const std::bad_alloc&) {
    // The window is planned anew next time.
  }
}

// Commands that can be fused and run alone, with the reason.
void RegionRunner::count_not_fused() {
  uint32_t counts[kNotFusedCount] = {};
  for (const Region& region : plan_.regions) {
    const PlannedCommand& first = plan_.commands[region.commands[0]];
    if (region.commands.size() != 1 || first.command->kind != CommandKind::Region) continue;
    bool dropped = true;
    for (bool stored : first.stored) dropped = dropped && !stored;
    if (!dropped) ++counts[static_cast<int>(region.alone)];
  }
  for (int i = 0; i < kNotFusedCount; ++i) {
    if (counts[i] != 0) profile_counters().not_fused[i] += counts[i];
    if (preparing_) preparing_->not_fused[i] = counts[i];
  }
}

std::unique_ptr<PreparedWindow> RegionRunner::prepare(Window& window, bool fusing) {
  window_ = &window;
  preparing_ = std::make_unique<PreparedWindow>();
  preparing_->fusing = fusing;
  planner_.plan(expansion_.expand(window), fusing, plan_);
  for (const Region& region : plan_.regions) prepare_region(plan_, region);
  count_not_fused();
  return std::move(preparing_);
}

void RegionRunner::prepare_region(const Plan& plan, const Region& region) {
  const PlannedCommand& first = plan.commands[region.commands[0]];
  if (first.command->kind != CommandKind::Region) return prepare_whole(region.commands[0]);
  bool any_stored = false;
  for (int32_t index : region.commands) {
    for (bool stored : plan.commands[index].stored) any_stored = any_stored || stored;
  }
  if (!any_stored) {
    preparing_->dropped += region.commands.size();
    return;
  }
  int threads = first.command->threads;
  RegionCommand single{&first, kNoSources, nullptr};
  std::span<const RegionCommand> commands(&single, 1);
  if (region.commands.size() == 1) {
    bind_single(single);
  } else {
    threads = bind_fused(plan, region);
    commands = commands_;
  }
  KernelStore::Entry& entry = find_entry();
  KernelStore::instance().compile(entry, [&] { return emitter_.build_spec(commands); });
  prepare_bound(region.commands, entry, threads);
}

void RegionRunner::replay(const PreparedWindow& prepared, const Window& window) {
  counters().plan_hits += 1;
  planned_ = nullptr;
  if (profiling()) [[unlikely]] {
    try {
      profile_window(window);
    } catch (const std::bad_alloc&) {
      // The profile lacks a window.
    }
  }
  for (int i = 0; i < kNotFusedCount; ++i) {
    if (prepared.not_fused[i] != 0) profile_counters().not_fused[i] += prepared.not_fused[i];
  }
  counters().dropped_commands += prepared.dropped;
  uint64_t fused = 0, run = 0;
  for (const PreparedRegion& region : prepared.regions) {
    const Command& command = window.commands[region.command];
    if (region.executable == nullptr) {
      guarded(command, [&] { command.kind == CommandKind::Callback ? run_callback(command) : run_kernel(command); });
      continue;
    }
    if (region.commands == 1) {
      if (command.items == 1) {
        guarded(command, [&] { replay_region(region, window); });
      } else {
        guarded(command_at(window, region.members[0]), [&] { replay_region(region, window); });
      }
      ++run;
      continue;
    }
    try {
      if (stream_.any_poison() && any_blocked(region, window)) [[unlikely]] {
        replan_region(prepared, region, window);
        continue;
      }
      replay_region(region, window);
      // What an earlier failure left without a value has one again.
      if (stream_.any_poison()) [[unlikely]] {
        for (Expansion::Place member : region.members) stream_.succeed(command_at(window, member));
      }
    } catch (...) {
      fail_all(region.members, [&](Expansion::Place member) { return command_at(window, member); });
    }
    ++run;
    fused += region.commands;
  }
  counters().regions += prepared.regions.size();
  counters().regions_run += run;
  counters().fused_commands += fused;
}

void RegionRunner::replay_region(const PreparedRegion& region, const Window& window) {
  pointers_.clear();
  scalars_.clear();
  for (size_t i = 0; i < region.references.size(); ++i) {
    const Operand& operand = window.commands[region.references[i].command].operands[region.references[i].operand];
    pointers_.push_back(operand.kind == codegen::OperandKind::Tensor ? operand.data : nullptr);
    if (static_cast<int32_t>(i) < region.inputs) scalars_.push_back(operand.scalar);
  }
  const codegen::RegionArguments arguments{region.sizes.data(), pointers_.data(), region.strides.data(),
                                           scalars_.data(), region.threads};
  if (profiling()) [[unlikely]] {
    KernelWork work;
    for (Expansion::Place member : region.members) work.add_command(command_at(window, member));
    for (const RegionEmitter::Reference& reference : region.references)
      work.add_operand(window.commands[reference.command].operands[reference.operand]);
    work.run(region.executable, false, [&] { region.executable->run(arguments); });
  } else {
    region.executable->run(arguments);
  }
}

bool RegionRunner::any_blocked(const PreparedRegion& region, const Window& window) const {
  return std::any_of(region.members.begin(), region.members.end(),
                     [&](Expansion::Place member) { return stream_.blocking(command_at(window, member)) != nullptr; });
}

// A command of a fused region cannot run, others can: they run one by one, for which the region's plan is needed.
void RegionRunner::replan_region(const PreparedWindow& prepared, const PreparedRegion& region, const Window& window) {
  if (planned_ != &window) {
    planner_.plan(expansion_.expand(window), prepared.fusing, plan_);
    planned_ = &window;
  }
  const auto planned = std::find_if(plan_.regions.begin(), plan_.regions.end(), [&](const Region& each) {
    return expansion_.place(each.commands[0]) == region.members[0];
  });
  check_internal(planned != plan_.regions.end() && planned->commands.size() == region.members.size(),
                 "a prepared window has another plan than before");
  run_region(plan_, *planned);
}

void RegionRunner::prepare_bound(std::span<const int32_t> commands, KernelStore::Entry& entry, int threads) {
  if (!preparing_) return;
  PreparedRegion& region = preparing_->regions.emplace_back();
  region.executable = KernelStore::ready(entry);
  region.command = expansion_.place(commands[0]).command;
  region.commands = static_cast<int32_t>(commands.size());
  region.threads = threads;
  for (int32_t command : commands) region.members.push_back(expansion_.place(command));
  region.inputs = emitter_.input_count();
  region.sizes.assign(emitter_.sizes().begin(), emitter_.sizes().end());
  region.strides.assign(emitter_.strides().begin(), emitter_.strides().end());
  emitter_.append_references(region.references);
  for (RegionEmitter::Reference& reference : region.references) {
    reference.command = commands[reference.command];
    expansion_.locate(reference.command, reference.operand, *window_);
  }
}

void RegionRunner::prepare_whole(int32_t command) {
  if (preparing_) preparing_->regions.emplace_back().command = expansion_.place(command).command;
}

void RegionRunner::run_region(const Plan& plan, const Region& region) noexcept {
  const PlannedCommand& first = plan.commands[region.commands[0]];
  try {
    if (first.command->kind == CommandKind::Region) return run_commands(plan, region);
    prepare_whole(region.commands[0]);
    const Command& command = *first.command;
    guarded(command, [&] { command.kind == CommandKind::Callback ? run_callback(command) : run_kernel(command); });
  } catch (...) {
    fail_all(region.commands, [&](int32_t index) -> const Command& { return *plan.commands[index].command; });
  }
}

void RegionRunner::run_commands(const Plan& plan, const Region& region) {
  bool any_stored = false;
  bool any_blocked = false;
  for (int32_t index : region.commands) {
    const PlannedCommand& planned = plan.commands[index];
    for (bool stored : planned.stored) any_stored = any_stored || stored;
    if (stream_.any_poison()) [[unlikely]]
      any_blocked = any_blocked || stream_.blocking(*planned.command) != nullptr;
  }
  if (!any_stored) {
    counters().dropped_commands += region.commands.size();
    if (preparing_) preparing_->dropped += region.commands.size();
    return;
  }
  if (any_blocked) return run_unfused(plan, region);
  if (region.commands.size() == 1) {
    const PlannedCommand& only = plan.commands[region.commands[0]];
    return guarded(*only.command, [&] { run_single(only, nullptr, region.commands[0]); });
  }
  run_fused(plan, region);
}

int RegionRunner::bind_fused(const Plan& plan, const Region& region) {
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
  emitter_.bind(commands_, refined_space(region), region.reduction, false);
  return threads;
}

void RegionRunner::run_fused(const Plan& plan, const Region& region) {
  const int threads = bind_fused(plan, region);
  KernelStore::Entry& entry = find_entry();
  if (!settings().interpret && !settings().synchronous_compile && KernelStore::instance().load(entry) == nullptr) {
    const bool requested = KernelStore::instance().request(entry, [&] { return emitter_.build_spec(commands_); });
    ProfileCounters& profile = profile_counters();
    (requested ? profile.awaiting_compile : profile.seen_once) += region.commands.size();
    run_unfused(plan, region);
    return;
  }
  execute(commands_, entry, threads);
  prepare_bound(region.commands, entry, threads);
  if (stream_.any_poison()) [[unlikely]] {
    for (const RegionCommand& command : commands_) stream_.succeed(*command.planned->command);
  }
  counters().fused_commands += region.commands.size();
  counters().regions_run += 1;
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
  if (profiling()) [[unlikely]] {
    KernelWork work;
    for (const RegionCommand& entry : commands) work.add_command(*entry.planned->command);
    std::vector<RegionEmitter::Reference> references;
    emitter_.append_references(references);
    for (const RegionEmitter::Reference& reference : references)
      work.add_operand(commands[reference.command].planned->command->operands[reference.operand]);
    work.run(executable, false, [&] { executable->run(emitter_.arguments(threads)); });
    return;
  }
  executable->run(emitter_.arguments(threads));
}

void RegionRunner::bind_single(const RegionCommand& command) {
  const CanonicalCommand& canonical = command.planned->canonical;
  check_internal(command.planned->command->input_count <= std::size(kNoSources), "{}: more than {} inputs",
                 command.planned->command->name(), std::size(kNoSources));
  Space space = canonical.space;
  if (canonical.extended) --space.rank;  // a row command by itself visits each row once
  emitter_.bind({&command, 1}, space, canonical.reduction, true);
}

void RegionRunner::run_single(const PlannedCommand& planned, char* const* data, int32_t index) {
  RegionCommand single{&planned, kNoSources, data};
  bind_single(single);
  KernelStore::Entry& entry = find_entry();
  execute({&single, 1}, entry, planned.command->threads);
  prepare_bound({&index, 1}, entry, planned.command->threads);
  counters().regions_run += 1;
}

// One kernel per command. Values that the plan keeps out of memory go to scratch instead: their recorded addresses may
// already belong to a later tensor.
void RegionRunner::run_unfused(const Plan& plan, const Region& region) {
  preparing_.reset();  // to be prepared when the fused kernel exists
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
    guarded(command, [&] { run_single(planned, data.data(), index); });
  }
}

void RegionRunner::run_kernel(const Command& command) {
  auto fill = [](std::span<const Operand> operands, std::vector<kernels::TensorView>& views) {
    views.resize(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      views[i].data = operand.data;
      views[i].dtype = operand.dtype;
      views[i].sizes.assign(operand.sizes, operand.sizes + operand.rank);
      views[i].strides.assign(operand.strides, operand.strides + operand.rank);
    }
  };
  fill(command.outputs(), output_views_);
  fill(command.inputs(), input_views_);
  const kernels::Call call{output_views_, input_views_, std::span(command.attributes, command.attribute_count),
                           std::span(command.scalars, command.scalar_count), command.threads};
  if (profiling()) [[unlikely]] {
    profile_whole(command, command.kernel, [&] { command.kernel->run(call); });
  } else {
    command.kernel->run(call);
  }
}

void RegionRunner::run_callback(const Command& command) {
  const std::function<void()>& body = window_->callbacks[command.callback];
  if (profiling()) [[unlikely]] {
    // Functions of one name are one row.
    profile_whole(command, command.label != nullptr ? command.label : "callback", body);
  } else {
    body();
  }
}

void RegionRunner::profile_whole(const Command& command, const void* key, const std::function<void()>& body) {
  KernelWork work;
  work.add_command(command);
  for (const Operand& operand : std::span(command.operands, command.output_count + command.input_count))
    work.add_operand(operand);
  work.run(key, true, body);
}

}  // namespace neuron::eager
