#include "torch_neuronx/csrc/register/graph.h"

#include <ATen/core/Generator.h>
#include <ATen/core/GraphImplInterface.h>

#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "neuron/eager/command_graph.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/generator.h"
#include "torch_neuronx/csrc/register/stream.h"

namespace torch_neuronx {
namespace {

namespace eager = neuron::eager;

// Pools by identifier, as long as a graph uses them. First member: chosen here for a graph; second: by the program.
struct Pools {
  std::mutex mutex;
  std::map<c10::MempoolId_t, std::weak_ptr<eager::GraphPool>> pools;
  uint64_t last = 0;
};

Pools& pools() {
  static auto* instance = new Pools;
  return *instance;
}

std::shared_ptr<eager::GraphPool> pool_of(c10::MempoolId_t& id, c10::DeviceIndex device) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.pools, [](const auto& entry) { return entry.second.expired(); });
  if (id == c10::MempoolId_t{0, 0}) id = {++all.last, 0};
  std::weak_ptr<eager::GraphPool>& known = all.pools[id];
  std::shared_ptr<eager::GraphPool> pool = known.lock();
  if (pool == nullptr) known = pool = std::make_shared<eager::GraphPool>(device);
  return pool;
}

class NeuronGraph final : public at::GraphImplInterface {
 public:
  explicit NeuronGraph(const at::GraphImplArgs& arguments) : keep_(arguments.keep_graph) {}

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode) override {
    use_device();
    const c10::DeviceIndex device = current_device();
    translate_errors([&] {
      // A pool that was released during the same capture must not come back to life: the graph holds it.
      std::shared_ptr<eager::GraphPool> memory = pool_of(pool, device);
      graph_.begin(uncaptured_stream_of(current_c10_stream(device)), std::move(memory));
    });
    pool_ = pool;
  }

  void capture_end() override {
    translate_errors([&] { graph_.end(); });
    if (!keep_ && !graph_.failed()) instantiate();
  }

  void instantiate() override {
    translate_errors([&] { graph_.instantiate(); });
  }

  void replay() override {
    use_device();
    translate_errors([&] {
      std::vector<eager::RandomState> states;
      for (const auto& use : graph_.random_uses()) {
        auto* generator = static_cast<at::Generator*>(use.owner.get())->get<NeuronGeneratorImpl>();
        const std::lock_guard lock(generator->mutex_);
        states.push_back({generator->current_seed(), generator->get_offset()});
        generator->set_offset(generator->get_offset() + use.count);
      }
      // A graph belongs to the device it was captured on, whichever is current.
      const c10::DeviceIndex device =
          graph_.pool() ? static_cast<c10::DeviceIndex>(graph_.pool()->core()) : current_device();
      graph_.replay(uncaptured_stream_of(current_c10_stream(device)), states);
    });
  }

  void reset() override {
    translate_errors([&] { graph_.reset(); });
    pool_ = {0, 0};
  }

  c10::MempoolId_t pool() const override {
    TORCH_CHECK(pool_ != (c10::MempoolId_t{0, 0}), "the graph has no memory pool before its capture begins");
    return pool_;
  }

  void enable_debug_mode() override { debug_ = true; }

  void debug_dump(const std::string& path) override {
    TORCH_CHECK(debug_, "debug_dump() needs enable_debug_mode() before the capture");
    const std::string text = translate_errors([&] { return graph_.dot(); });
    std::ofstream file(path);
    file << text;
    TORCH_CHECK(file.good(), "cannot write the graph to '", path, "'");
  }

 private:
  const bool keep_;
  bool debug_ = false;
  c10::MempoolId_t pool_{0, 0};
  eager::CommandGraph graph_;
};

std::unique_ptr<at::GraphImplInterface> make_graph(const at::GraphImplArgs& arguments) {
  return std::make_unique<NeuronGraph>(arguments);
}

}  // namespace

void register_graph() {
  at::GraphImplRegistry()->Register(c10::DeviceTypeName(kDeviceType, /*lower_case=*/false), &make_graph);
}

c10::MempoolId_t new_graph_pool() {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  return {0, ++all.last};
}

}  // namespace torch_neuronx
