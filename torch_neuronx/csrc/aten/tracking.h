// Which operators ran natively and which fell back to the CPU: behind get_executed_ops(), get_fallback_ops() and
// clear_op_tracking(). Names are "aten::add.Tensor". Thread-safe; none of it takes the GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace neuron::aten {

// One per registered native kernel; lives for the whole process.
struct OperatorRecord {
  std::string name;
  std::atomic<bool> executed{false};
};

// A record that executed_operators() will know. Called at registration.
OperatorRecord& new_operator_record(std::string name);
// On the hot path: a load, and a store the first time.
inline void note_executed(OperatorRecord& record) {
  if (!record.executed.load(std::memory_order_relaxed)) record.executed.store(true, std::memory_order_relaxed);
}

struct FallbackCount {
  std::string name;
  uint64_t calls = 0;
  uint64_t bytes = 0;  // copied between the device and the host, both ways
};

// Returns true when this is the operator's first fallback since the process started (the time to warn).
bool note_fallback(const std::string& name, uint64_t bytes);

std::vector<std::string> executed_operators();
std::vector<FallbackCount> fallback_operators();
void clear_operator_tracking();

}  // namespace neuron::aten
