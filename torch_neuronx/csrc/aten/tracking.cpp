#include "torch_neuronx/csrc/aten/tracking.h"

#include <deque>
#include <map>
#include <mutex>
#include <set>

namespace neuron::aten {
namespace {

struct State {
  std::mutex mutex;
  std::deque<OperatorRecord> records;  // references stay valid
  std::map<std::string, FallbackCount> fallbacks;
  std::set<std::string> warned;
};

State& state() {
  static State* instance = new State;  // used by threads that may outlive static destruction
  return *instance;
}

}  // namespace

OperatorRecord& new_operator_record(std::string name) {
  std::lock_guard lock(state().mutex);
  OperatorRecord& record = state().records.emplace_back();
  record.name = std::move(name);
  return record;
}

bool note_fallback(const std::string& name, uint64_t bytes) {
  std::lock_guard lock(state().mutex);
  FallbackCount& count = state().fallbacks[name];
  count.name = name;
  ++count.calls;
  count.bytes += bytes;
  return state().warned.insert(name).second;
}

std::vector<std::string> executed_operators() {
  std::lock_guard lock(state().mutex);
  std::set<std::string> names;
  for (const OperatorRecord& record : state().records) {
    if (record.executed.load(std::memory_order_relaxed)) names.insert(record.name);
  }
  return {names.begin(), names.end()};
}

std::vector<FallbackCount> fallback_operators() {
  std::lock_guard lock(state().mutex);
  std::vector<FallbackCount> counts;
  for (const auto& [name, count] : state().fallbacks) counts.push_back(count);
  return counts;
}

void clear_operator_tracking() {
  std::lock_guard lock(state().mutex);
  for (OperatorRecord& record : state().records) record.executed.store(false, std::memory_order_relaxed);
  state().fallbacks.clear();
}

}  // namespace neuron::aten
