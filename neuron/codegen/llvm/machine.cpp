#include "neuron/codegen/llvm/machine.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <array>
#include <mutex>
#include <vector>

#include "neuron/base/error.h"

namespace neuron::codegen {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// Passes of the back end that cost a third of a kernel's compile time and change nothing measurable in its speed: the
// emitters already write the addresses and loops they want.
void choose_passes() {
  const char* options[] = {"neuron",     "-disable-lsr",         "-disable-cgp", "-disable-ssc", "-disable-copyprop",
                           "-fast-isel", "-enable-misched=false"};
  llvm::cl::ParseCommandLineOptions(std::size(options), options);
}

std::unique_ptr<llvm::TargetMachine> make_machine(HostTarget target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    choose_passes();
  });
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
  check_internal(found != nullptr, "LLVM has no x86 back end: {}", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const bool wide = target == HostTarget::Avx512;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(kTriple, wide ? "x86-64-v4" : "x86-64-v3", wide ? "-prefer-256-bit" : "", options,
                                 llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less));
  check_internal(machine != nullptr, "LLVM cannot generate code for {}", host_target_name(target));
  return machine;
}

// Idle back ends by target. A TargetMachine serves one thread at a time and costs milliseconds to make.
class Machines {
 public:
  std::unique_ptr<llvm::TargetMachine> take(HostTarget target) {
    {
      std::lock_guard lock(mutex_);
      auto& idle = idle_[static_cast<size_t>(target)];
      if (!idle.empty()) {
        auto machine = std::move(idle.back());
        idle.pop_back();
        return machine;
      }
    }
    return make_machine(target);
  }
  void give_back(HostTarget target, std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard lock(mutex_);
    idle_[static_cast<size_t>(target)].push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<std::unique_ptr<llvm::TargetMachine>>, 2> idle_;
};

Machines& machines() {
  static Machines* kept = new Machines;  // never destroyed: other threads may still compile at exit
  return *kept;
}

}  // namespace

std::string compile_module(HostTarget target, MachineOutput output, const std::function<void(llvm::Module&)>& fill) {
  auto machine = machines().take(target);
  llvm::LLVMContext context;
  llvm::Module module("region", context);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  fill(module);
#ifndef NDEBUG
  std::string problems;
  llvm::raw_string_ostream text(problems);
  if (llvm::verifyModule(module, &text)) fail(ErrorKind::Internal, "the generated code is malformed: {}", text.str());
#endif
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type =
      output == MachineOutput::Object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  const bool refused = machine->addPassesToEmitFile(passes, stream, nullptr, type, true);
  check_internal(!refused, "LLVM's back end cannot write this kind of file");
  passes.run(module);
  machines().give_back(target, std::move(machine));
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace neuron::codegen
