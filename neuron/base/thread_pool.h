// The one thread pool of the process. Work is split statically: which thread runs which part never changes a result,
// because every kernel's arithmetic is a function of the problem alone (docs/numerics.md).
//
// Callers: kernels and the executor, from any thread. Threads are started on the first parallel call, never at import;
// after fork the child starts with none and makes its own. Nested calls run inline.
#pragma once

#include <cstdint>

#include "neuron/base/function_ref.h"

namespace neuron {

// Calls body(begin, end) over a partition of [0, count) on at most `threads` threads, the caller being one of them,
// with at least `grain` items a part (grain >= 1). Returns when all parts are done; the first exception is rethrown.
void parallel_for(int threads, int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body);

// Logical processors this process may run on.
int hardware_threads();

}  // namespace neuron
