#include "neuron/runtime/platform.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include "neuron/base/error.h"
#include "neuron/base/options.h"

namespace neuron::runtime {
namespace {

constexpr int kPhysicalCores = 8;
constexpr size_t kDeviceMemory = size_t{96} << 30;

int logical_core_size() {
  const Option option = option_is_set(Option::LogicalCoreSize) ? Option::LogicalCoreSize : Option::VirtualCoreSize;
  return static_cast<int>(option_integer(option));
}

bool read_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// The limit in a control group file, or no limit when it is absent or says "max".
size_t control_group_limit(const char* path) {
  std::ifstream file(path);
  size_t limit = 0;
  return file >> limit && limit > 0 ? limit : SIZE_MAX;
}

}  // namespace

InstanceInfo presented_instance() { return {.family = 5, .size = 8, .name = "trn2.3xlarge", .architecture = "trn2"}; }

int presented_core_count() { return kPhysicalCores / logical_core_size(); }

size_t presented_core_memory() { return kDeviceMemory / static_cast<size_t>(presented_core_count()); }

int presented_visible_cores() {
  const int total = presented_core_count();
  if (option_is_set(Option::VisibleCores)) {
    const std::string& text = option_text(Option::VisibleCores);
    const size_t dash = text.find('-');
    int first = 0, last = 0;
    bool good = read_number(std::string_view(text).substr(0, dash), first);
    if (dash == std::string::npos) {
      last = first;
    } else {
      good = good && read_number(std::string_view(text).substr(dash + 1), last);
    }
    if (!good || first < 0 || last < first || last >= total) {
      fail(ErrorKind::Value,
           "NEURON_RT_VISIBLE_CORES={} is not a valid setting: allowed is a core or a contiguous range of the cores "
           "0-{}",
           text, total - 1);
    }
    return last - first + 1;
  }
  const int64_t wanted = option_integer(Option::NumCores);
  if (wanted > total) {
    fail(ErrorKind::Value, "NEURON_RT_NUM_CORES={} is not a valid setting: {} has {} logical cores", wanted,
         presented_instance().name, total);
  }
  return wanted == 0 ? total : static_cast<int>(wanted);
}

size_t machine_memory() {
  const size_t physical = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min({physical, control_group_limit("/sys/fs/cgroup/memory.max"),
                   control_group_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
}

}  // namespace neuron::runtime
