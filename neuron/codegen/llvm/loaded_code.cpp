#include "neuron/codegen/llvm/loaded_code.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include "neuron/base/error.h"
#include "neuron/codegen/llvm/runtime_functions.h"

namespace neuron::codegen {

namespace {

// Generated code may refer to the functions of runtime_functions.h and to nothing else.
class Resolver : public llvm::JITSymbolResolver {
 public:
  void lookup(const LookupSet& symbols, OnResolvedFunction on_resolved) override {
    LookupResult result;
    for (llvm::StringRef symbol : symbols) {
      void* address = runtime_function(std::string_view(symbol.data(), symbol.size()));
      if (address == nullptr) {
        on_resolved(llvm::createStringError("no function " + symbol));
        return;
      }
      result[symbol] = llvm::JITEvaluatedSymbol(reinterpret_cast<uintptr_t>(address), llvm::JITSymbolFlags::Exported);
    }
    on_resolved(std::move(result));
  }
  llvm::Expected<LookupSet> getResponsibilitySet(const LookupSet&) override { return LookupSet(); }
};

}  // namespace

struct LoadedCode::Memory {
  llvm::SectionMemoryManager manager;
};

LoadedCode::LoadedCode(const std::string& object) : memory_(std::make_unique<Memory>()) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(object), "region");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) fail(ErrorKind::Runtime, "a compiled kernel is unreadable: {}", llvm::toString(file.takeError()));
  Resolver resolver;
  llvm::RuntimeDyld linker(memory_->manager, resolver);
  auto info = linker.loadObject(**file);
  if (!linker.hasError()) linker.resolveRelocations();
  if (linker.hasError())
    fail(ErrorKind::Runtime, "a compiled kernel cannot be linked: {}", linker.getErrorString().str());
  std::string problem;
  if (memory_->manager.finalizeMemory(&problem))
    fail(ErrorKind::Runtime, "a compiled kernel cannot be made executable: {}", problem);
  kernel_ = reinterpret_cast<KernelFunction>(linker.getSymbol(kKernelName).getAddress());
  if (kernel_ == nullptr) fail(ErrorKind::Runtime, "a compiled kernel has no function '{}'", kKernelName);
}

LoadedCode::~LoadedCode() = default;

}  // namespace neuron::codegen
