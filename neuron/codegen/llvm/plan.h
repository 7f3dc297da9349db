// Where each value of a region is computed: once a kernel, once a row, or for every element, and in which pass over the
// row.
//
// A row is walked in stages. Stage s computes the reductions whose operands need the results of s earlier reductions in
// sequence: softmax has three stages (maximum; sum of exponentials; division). Values that a later stage needs again
// are recomputed when that is cheap and otherwise kept in a scratch row. Full-shape results are stored in the last
// stage only, so that an output may share an input's memory.
#pragma once

#include <vector>

#include "neuron/codegen/region.h"

namespace neuron::codegen {

enum class Scope : uint8_t {
  Kernel,   // constants, numbers given at run time and what follows from them
  Row,      // inputs without extent along the innermost dimension; reduced values of an Inner region
  Element,  // varies along the innermost dimension
  Column,   // reduced values of an Outer region: vary along the innermost dimension, computed after the reduction
};

// A body of this cost fills the processor's window alone, when it is one long chain of dependent operations.
constexpr int kLongChain = 96;

struct Stage {
  std::vector<int> operations;  // elementwise operations to emit per element, in order
  std::vector<int> inputs;      // parameters of Element scope that are read
  std::vector<int> random;      // operations whose random numbers are made line by line, before they are read
  std::vector<int> reductions;  // reduce operations fed by this stage
  std::vector<ir::Value> scratch_loads;
  std::vector<ir::Value> scratch_stores;
  bool stores_outputs = false;  // full-shape results
  int cost = 0;                 // per element, in vector additions
};

class Plan {
 public:
  // Throws Error(Internal) naming the operation when the graph is outside the convention of region.h.
  explicit Plan(const RegionSpec& spec);

  const RegionSpec& spec() const { return spec_; }
  const ir::Graph& graph() const { return *spec_.graph; }
  Scope scope(ir::Value value) const { return info_[value.id].scope; }
  // The first stage in which the value can be computed; for Row scope: before whose loop.
  int stage(ir::Value value) const { return info_[value.id].stage; }
  const std::vector<Stage>& stages() const { return stages_; }
  // Values of Element scope kept in scratch rows, in the order of their rows.
  const std::vector<ir::Value>& scratch() const { return scratch_; }
  int scratch_index(ir::Value value) const;
  // Whether a loop body needs the input, of Element scope.
  bool reads(int input) const;
  bool output_is_reduced(int output) const;
  // Bytes of the widest element type that is held in vectors.
  int widest() const { return widest_; }
  // Whole cost per element, memory included; decides how finely work is split over threads.
  int cost() const;

 private:
  struct Info {
    Scope scope = Scope::Kernel;
    int stage = 0;
    int cost = 0;  // of computing it from inputs
  };
  void place_parameters();
  void place_operation(int index);
  void build_stages();
  void need(ir::Value value, int stage, std::vector<char>& visited);
  bool is_random_line(const ir::Operation& operation) const;
  void measure();

  const RegionSpec& spec_;
  std::vector<Info> info_;
  std::vector<Stage> stages_;
  std::vector<ir::Value> scratch_;
  int widest_ = 1;
};

}  // namespace neuron::codegen
