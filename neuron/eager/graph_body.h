// What a captured graph consists of: its windows, their plans, and the places that a replay fills in. Shared by the
// graph and its replays under way.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "neuron/eager/command.h"
#include "neuron/eager/command_graph.h"
#include "neuron/eager/prepared_window.h"

namespace neuron::eager {

struct GraphBody {
  std::shared_ptr<GraphPool> pool;
  std::vector<std::unique_ptr<Window>> windows;
  std::vector<std::unique_ptr<PreparedWindow>> prepared;                           // empty, or one per window
  uint64_t command_count = 0, region_command_count = 0, kernel_command_count = 0;  // as Counters has them

  // A number in a command that comes from a generator: its seed, or its offset plus `delta`.
  struct RandomPlace {
    uint64_t* word;
    uint32_t use;
    bool seed;
    uint64_t delta;
  };
  std::vector<RandomPlace> random_places;

  // Memory of the program that the commands use.
  struct External {
    const runtime::Block* block;
    uint64_t generation;
    const Command* command;
  };
  std::vector<External> externals;
  std::vector<runtime::Block*> written;

  std::mutex running;  // one replay at a time: it fills in the numbers

  // Finds the places and the memory. Sets `failure` when numbers of a generator went somewhere a replay cannot reach.
  void index(std::span<const CommandGraph::RandomUse> uses, std::string& failure);
  void fill_random(std::span<const RandomState> states);
  // Throws Error(Runtime) when memory of the program was freed since the capture.
  void check_memory() const;
  std::string dot() const;
};

// False for the null device, which runs nothing.
bool runtime_computes();

// Seeds that stand for a generator in a capture, of all captures of the process.
void note_sentinel_seed(uint64_t seed);

}  // namespace neuron::eager
