// The LLVM values of a region's graph values while a kernel is emitted: uniform ones as a scalar and its splat, element
// ones as `parts` vectors that live for one loop body.
#pragma once

#include <vector>

#include "neuron/codegen/llvm/lanes.h"
#include "neuron/codegen/llvm/plan.h"

namespace neuron::codegen {

class Values {
 public:
  Values(const Plan& plan, llvm::IRBuilder<>& builder, int width);

  int width() const { return width_; }
  // Sets a value that is equal for all lanes.
  void set_uniform(ir::Value value, llvm::Value* scalar);
  llvm::Value* uniform(ir::Value value) const;
  // All uniform values, of a row among others: exchanged when another row is at work.
  struct Uniforms {
    std::vector<llvm::Value*> scalars, splats;
  };
  const Uniforms& uniforms() const { return uniforms_; }
  void exchange(Uniforms& other) { std::swap(uniforms_, other); }

  // Starts a loop body of `parts` vectors: forgets all element values.
  void begin_body(int parts);
  void set(ir::Value value, int part, llvm::Value* lanes) { elements_[part][value.id] = lanes; }
  // The lanes of part `part`: an element value or the splat of a uniform one.
  llvm::Value* get(ir::Value value, int part) const;

  // Emits operation `index` in scalar form, or for one part.
  void emit_uniform(int index);
  void emit(int index, int part);
  // Emits it for the parts 0 … parts-1, an instruction of each in turn: a function of many instructions is one long
  // chain, and processors with small schedulers do not see the next part's chain behind it.
  void emit_by_turns(int index, int parts);

 private:
  ir::Value source(ir::Value value) const;

  const Plan& plan_;
  llvm::IRBuilder<>& builder_;
  int width_;
  Uniforms uniforms_;
  std::vector<std::vector<llvm::Value*>> elements_;
};

}  // namespace neuron::codegen
