// The host compiler: plan, emit, compile, load.
#include "neuron/codegen/llvm/emitter.h"
#include "neuron/codegen/llvm/executable.h"
#include "neuron/codegen/llvm/machine.h"
#include "neuron/codegen/llvm/plan.h"

namespace neuron::codegen {

namespace {

std::string generate(const Plan& plan, HostTarget target, MachineOutput output) {
  return compile_module(target, output, [&](llvm::Module& module) { emit_kernel(module, plan, vector_bytes(target)); });
}

class LlvmCompiler final : public HostCompiler {
 public:
  std::shared_ptr<const Executable> compile(const RegionSpec& spec) override {
    return compile_for(spec, detected_host_target());
  }
  std::shared_ptr<const Executable> compile_for(const RegionSpec& spec, HostTarget target) override {
    Plan plan(spec);
    return std::make_shared<HostExecutable>(facts_of(plan, target), generate(plan, target, MachineOutput::Object));
  }
  std::shared_ptr<const Executable> load(const std::string& bytes) override {
    return HostExecutable::deserialize(bytes, detected_host_target());
  }
  std::string disassemble(const RegionSpec& spec, HostTarget target) override {
    return generate(Plan(spec), target, MachineOutput::Assembly);
  }
  std::string build_id() const override { return generator_build_id(); }
};

}  // namespace

}  // namespace neuron::codegen

extern "C" __attribute__((visibility("default"))) neuron::codegen::HostCompiler* neuron_codegen_create() {
  static neuron::codegen::LlvmCompiler* compiler = new neuron::codegen::LlvmCompiler;
  return compiler;
}
