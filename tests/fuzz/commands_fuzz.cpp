// Streams of recorded commands: a random program gives the same bytes and the same errors however it is executed.
//
// The bytes of an input choose a program over raw blocks: operators of every kind over views with overlapping storage,
// library kernels and callbacks that may throw, deaths, recycled memory, two streams with events between them, host
// reads, flushes, another window size. It runs command by command, then fused twice (the second time from the plans of
// the first), and, where the operators are exact, on the interpreter; what the host reads must not differ. With
// TORCH_NEURONX_DEVICE=null nothing is computed and nothing compared: no command may get stuck or crash.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/base/log.h"
#include "neuron/eager/recorder.h"
#include "neuron/eager/settings.h"
#include "neuron/runtime/allocator.h"
#include "neuron/runtime/device.h"
#include "tests/fuzz/input.h"

namespace neuron::fuzz {
namespace {

using eager::RegionInput;
using eager::TensorArgument;

// --- operators -------------------------------------------------------------------------------------------------------
enum class Outputs : uint8_t { Same, Reduced, Truth, Index, ValueAndIndex, TwoReduced };
// Which dimension is combined.
enum class Combine : uint8_t { None, Any, Innermost };
enum class Classes : uint8_t { Any, Numbers, Floats };

struct Row {
  const char* name;
  int tensors;               // inputs over the whole space, in the common dtype
  std::vector<double> tail;  // numbers after them
  Classes classes;
  Outputs outputs = Outputs::Same;
  bool exact = true;       // the interpreter gives the same bits as generated code
  bool condition = false;  // a truth value comes first
  bool counts = false;     // the number of combined elements is the last input
  bool positions = false;  // the position along the combined dimension is the last input
  std::vector<int64_t> attributes = {};
};

const std::vector<Row>& elementwise_rows() {
  static const std::vector<Row> rows = {
      {"add", 2, {0.5}, Classes::Floats},
      {"add", 2, {2}, Classes::Numbers},
      {"sub", 2, {1}, Classes::Numbers},
      {"mul", 2, {}, Classes::Any},
      {"maximum", 2, {}, Classes::Any},
      {"minimum", 2, {}, Classes::Any},
      {"abs", 1, {}, Classes::Numbers},
      {"neg", 1, {}, Classes::Numbers},
      {"relu", 1, {}, Classes::Numbers},
      {"square", 1, {}, Classes::Numbers},
      {"sqrt", 1, {}, Classes::Floats},
      {"div", 2, {}, Classes::Floats},
      {"lerp", 3, {}, Classes::Floats},
      {"eq", 2, {}, Classes::Any, Outputs::Truth},
      {"lt", 2, {}, Classes::Any, Outputs::Truth},
      {"logical_not", 1, {}, Classes::Any, Outputs::Truth},
      {"where", 2, {}, Classes::Any, Outputs::Same, true, true},
      {"copy", 1, {}, Classes::Any},
      {"exp", 1, {}, Classes::Floats, Outputs::Same, false},
      {"tanh", 1, {}, Classes::Floats, Outputs::Same, false},
      {"sigmoid", 1, {}, Classes::Floats, Outputs::Same, false},
      {"silu", 1, {}, Classes::Floats, Outputs::Same, false},
      {"gelu", 1, {}, Classes::Floats, Outputs::Same, false},
      {"log", 1, {}, Classes::Floats, Outputs::Same, false},
  };
  return rows;
}

// Combine any dimension.
const std::vector<Row>& reduction_rows() {
  static const std::vector<Row> rows = {
      {"sum", 1, {}, Classes::Numbers, Outputs::Reduced},
      {"mean", 1, {}, Classes::Floats, Outputs::Reduced, true, false, true},
      {"amax", 1, {}, Classes::Numbers, Outputs::Reduced},
      {"any", 1, {}, Classes::Any, Outputs::Truth},
      {"argmax", 1, {}, Classes::Numbers, Outputs::Index, true, false, false, true},
      {"min", 1, {}, Classes::Numbers, Outputs::ValueAndIndex, true, false, false, true},
  };
  return rows;
}
// Combine the innermost dimension and may use the result along it.
const std::vector<Row>& normalization_rows() {
  static const std::vector<Row> rows = {
      {"var_mean", 1, {1}, Classes::Floats, Outputs::TwoReduced, true, false, true},
      {"_softmax", 1, {}, Classes::Floats, Outputs::Same, false},
      {"_log_softmax", 1, {}, Classes::Floats, Outputs::Same, false},
      {"_softmax_backward_data", 2, {}, Classes::Floats},
      {"logsumexp", 1, {}, Classes::Floats, Outputs::Reduced, false},
  };
  return rows;
}

// --- library kernels of the test -------------------------------------------------------------------------------------
void run_reverse(const kernels::Call& call) {
  const kernels::TensorView &from = call.inputs[0], &to = call.outputs[0];
  const int64_t count = to.sizes[0];
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[i] = from.as<float>()[(count - 1 - i) * from.strides[0]];
  for (int64_t i = 0; i < count; ++i) to.as<float>()[i * to.strides[0]] = values[i];
}
void run_failing(const kernels::Call& call) { fail(ErrorKind::Index, "refused by value {}", call.attributes[0]); }
void run_accumulate(const kernels::Call& call) {
  const kernels::TensorView &from = call.inputs[0], &to = call.outputs[0];
  for (int64_t i = 0; i < to.sizes[0]; ++i) to.as<float>()[i * to.strides[0]] += from.as<float>()[i * from.strides[0]];
}
const kernels::Kernel reverse_kernel{"fuzz_reverse", run_reverse, false};
const kernels::Kernel accumulate_kernel{"fuzz_accumulate", run_accumulate, false};
const kernels::Kernel failing_kernel{"fuzz_failing", run_failing, true};

// --- tensors ---------------------------------------------------------------------------------------------------------
struct Tensor {
  runtime::Block* block = nullptr;
  DType dtype = DType::Float32;
  int64_t numel = 0;
  std::vector<uint64_t> streams;  // that used it, beside its own
};

struct View {
  size_t tensor = 0;
  int64_t offset = 0;
  Dims sizes, strides;
};

constexpr DType kDTypes[] = {DType::Float32, DType::Float32, DType::BFloat16, DType::Int64,
                             DType::Float64, DType::Float16, DType::Int32,    DType::Bool};

bool fits(Classes classes, DType dtype) {
  if (classes == Classes::Any) return true;
  return classes == Classes::Floats ? is_float(dtype) : dtype != DType::Bool;
}

int64_t product(const Dims& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// NEURON_FUZZ_PRINT=1: the program, line by line.
bool printing() {
  static const bool on = std::getenv("NEURON_FUZZ_PRINT") != nullptr;
  return on;
}
template <typename... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  if (printing()) std::fprintf(stderr, "%s\n", fmt::format(text, std::forward<Arguments>(arguments)...).c_str());
}

// What the host sees of a run.
struct Transcript {
  std::vector<std::string> lines;
  friend bool operator==(const Transcript&, const Transcript&) = default;
};

eager::Stream& second_stream() {
  static eager::Stream& stream = eager::create_stream(0, 0);
  return stream;
}

class Program {
 public:
  Program(Input input, bool exact) : input_(input), exact_(exact) {}

  Transcript run() {
    stream_ = &eager::default_stream(0);
    for (int i = 0; i < 3; ++i) new_tensor(DType::Float32, 96);
    for (int step = 0; step < 160 && !input_.empty(); ++step) {
      guarded([&] { this->step(); });
    }
    for (size_t i = 0; i < tensors_.size(); ++i) read(i);
    while (!tensors_.empty()) destroy(tensors_.size() - 1);
    for (eager::Stream* stream : {&eager::default_stream(0), &second_stream()})
      guarded([&] { eager::synchronize(*stream, eager::FlushReason::Synchronize); });
    return std::move(transcript_);
  }

 private:
  std::string describe(const View& view) const {
    std::string sizes, strides;
    for (size_t d = 0; d < view.sizes.size(); ++d) {
      sizes += fmt::format("{}{}", d ? "," : "", view.sizes[d]);
      strides += fmt::format("{}{}", d ? "," : "", view.strides[d]);
    }
    const Tensor& tensor = tensors_[view.tensor];
    return fmt::format("t{}.{}[{}]:{}+{}", view.tensor, dtype_name(tensor.dtype), sizes, strides, view.offset);
  }

  template <typename F>
  void guarded(F&& body) {
    try {
      body();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Internal && std::string_view(error.what()).find("refused") == std::string::npos)
        finding("an internal error: {}", error.what());
      // The number of the command counts all of the process.
      const std::string text = error.what();
      transcript_.lines.push_back("error " + text.substr(0, text.find('\n')));
      say("  {}", transcript_.lines.back());
    }
  }

  TensorArgument argument(const View& view) {
    Tensor& tensor = tensors_[view.tensor];
    if (const uint64_t id = eager::stream_id(*stream_);
        id != tensor.block->stream &&
        std::find(tensor.streams.begin(), tensor.streams.end(), id) == tensor.streams.end())
      tensor.streams.push_back(id);
    char* data =
        static_cast<char*>(tensor.block->address) + view.offset * static_cast<int64_t>(dtype_size(tensor.dtype));
    return {data, tensor.block, tensor.dtype, view.sizes, view.strides, nullptr};
  }

  // Holds numbers that all dtypes have.
  size_t new_tensor(DType dtype, int64_t numel) {
    runtime::Block* block =
        runtime::allocate(0, static_cast<size_t>(numel) * dtype_size(dtype), eager::stream_id(*stream_));
    tensors_.push_back({block, dtype, numel, {}});
    const View all{tensors_.size() - 1, 0, Dims{numel}, Dims{1}};
    say("new {} at {}", describe(all), block->address);
    const RegionInput index{codegen::OperandKind::Index, {}, Scalar::of(int64_t{input_.byte() % 5}), all.strides};
    const TensorArgument output = argument(all);
    record("copy", all.sizes, 0, {&output, 1}, {&index, 1}, dtype == DType::Bool ? DType::Int64 : dtype, {});
    return tensors_.size() - 1;
  }

  void destroy(size_t index) {
    Tensor& tensor = tensors_[index];
    say("destroy t{}", index);
    for (uint64_t stream : tensor.streams) runtime::record_stream(tensor.block, stream);
    eager::record_death(tensor.block);
    runtime::free(tensor.block);
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void record(const char* name, std::span<const int64_t> sizes, uint64_t reduced,
              std::span<const TensorArgument> outputs, std::span<const RegionInput> inputs, DType common,
              std::span<const int64_t> attributes) {
    const lowering::Operator* op = lowering::find_operator(name);
    if (op == nullptr) finding("there is no operator {}", name);
    eager::record_region(*stream_, *op, common, sizes, reduced, outputs, inputs, attributes, 1 + input_.byte() % 2);
  }

  Dims any_space() {
    static const Dims spaces[] = {{24}, {6, 4}, {4, 6},       {2, 3, 4}, {1, 24}, {24, 1},
                                  {12}, {3, 4}, {2, 2, 2, 3}, {0, 4},    {3, 0}};
    return spaces[input_.pick(std::size(spaces))];
  }

  // A tensor of the dtype with room; a new one when there is none.
  size_t tensor_of(DType dtype, int64_t count) {
    const size_t first = input_.pick(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const size_t candidate = (first + i) % tensors_.size();
      if (tensors_[candidate].dtype == dtype && tensors_[candidate].numel >= count) return candidate;
    }
    return new_tensor(dtype, 48);
  }

  // Contiguous, transposed or strided; an input also overlaps itself, is broadcast, or has fewer dimensions.
  View view_of(size_t tensor, Dims sizes, bool writable) {
    View view{tensor, 0, std::move(sizes), {}};
    const size_t kind = input_.pick(writable ? 4 : 7);
    if (kind == 4) {
      while (view.sizes.size() > 1 && input_.chance(2)) view.sizes.erase(0);
    }
    if (kind == 5) {
      for (int64_t& size : view.sizes) size = input_.chance(2) ? 1 : size;
    }
    const size_t rank = view.sizes.size();
    view.strides.resize(rank, 1);
    if (kind == 1) {
      for (size_t d = 1; d < rank; ++d) view.strides[d] = view.strides[d - 1] * view.sizes[d - 1];
    } else {
      for (size_t d = rank; d-- > 1;) view.strides[d - 1] = view.strides[d] * view.sizes[d];
    }
    if (kind == 2) {
      for (int64_t& stride : view.strides) stride *= 2;
    }
    if (kind == 6) {
      for (int64_t& stride : view.strides) stride = static_cast<int64_t>(input_.pick(3));
    }
    auto reach = [&] {
      int64_t last = 0;
      if (product(view.sizes) == 0) return last;
      for (size_t d = 0; d < rank; ++d) last += std::max<int64_t>(0, view.sizes[d] - 1) * view.strides[d];
      return last;
    };
    const int64_t numel = tensors_[tensor].numel;
    if (reach() >= numel) {
      for (int64_t& stride : view.strides) stride /= 2;  // only doubled strides reach that far
    }
    const int64_t room = numel - reach();
    if (room <= 0) finding("a view of [{}] elements does not fit {}", product(view.sizes), numel);
    view.offset = input_.chance(3) ? static_cast<int64_t>(input_.pick(static_cast<size_t>(room))) : 0;
    return view;
  }

  RegionInput input_of(const View& view) { return {codegen::OperandKind::Tensor, argument(view), {}, {}}; }

  static bool same_elements(const View& a, const View& b) {
    return a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
  }

  // PyTorch refuses an output that partly overlaps an input or another output of its operation.
  static bool refused(const std::vector<View>& outputs, const std::vector<View>& inputs, bool reduced) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (outputs[i].tensor == outputs[j].tensor) return true;
      }
      for (const View& input : inputs) {
        if (outputs[i].tensor == input.tensor && (reduced || !same_elements(outputs[i], input))) return true;
      }
    }
    return false;
  }

  DType any_dtype(Classes classes) {
    for (;;) {
      const DType dtype = kDTypes[input_.pick(std::size(kDTypes))];
      if (fits(classes, dtype)) return dtype;
      if (input_.empty()) return DType::Float32;
    }
  }

  View output_view(DType dtype, const Dims& sizes) {
    const int64_t count = std::max<int64_t>(1, product(sizes));
    if (input_.chance(2)) return view_of(tensor_of(dtype, count), sizes, true);
    return view_of(new_tensor(dtype, input_.chance(2) ? count : 48), sizes, true);
  }

  void region(const Row& row, Combine combine) {
    if (exact_ && !row.exact) return;
    const DType common = any_dtype(row.classes);
    const Dims space = any_space();
    const int rank = static_cast<int>(space.size());
    int dimension = combine == Combine::None ? -1 : rank - 1;
    // The interpreter's order of a column sum is not that of generated code.
    if (combine == Combine::Any && !exact_) dimension = static_cast<int>(input_.pick(space.size()));
    const uint64_t reduced = dimension < 0 ? 0 : uint64_t{1} << dimension;
    std::vector<View> inputs;
    if (row.condition) inputs.push_back(view_of(tensor_of(DType::Bool, 24), space, false));
    for (int i = 0; i < row.tensors; ++i) inputs.push_back(view_of(tensor_of(common, 24), space, false));

    Dims kept = space;
    if (dimension >= 0) kept.erase(static_cast<size_t>(dimension));
    const bool full = dimension < 0 || (row.outputs == Outputs::Same);
    const Dims& sizes = full ? space : kept;
    DType first = common;
    if (row.outputs == Outputs::Truth) first = DType::Bool;
    if (row.outputs == Outputs::Index) first = DType::Int64;
    // Every operator may write another dtype than it computes in; numbers beyond an integer's range stay out of it.
    if (row.outputs == Outputs::Same && is_float(common) && input_.chance(4)) first = any_dtype(Classes::Floats);
    std::vector<View> outputs{output_view(first, sizes)};
    if (row.outputs == Outputs::ValueAndIndex) outputs.push_back(output_view(DType::Int64, sizes));
    if (row.outputs == Outputs::TwoReduced) outputs.push_back(output_view(common, sizes));
    if (refused(outputs, inputs, dimension >= 0)) return;
    if (printing()) {
      std::string line = fmt::format("{} (dimension {}) ->", row.name, dimension);
      for (const View& view : outputs) line += " " + describe(view);
      line += " from";
      for (const View& view : inputs) line += " " + describe(view);
      say("{}", line);
    }

    std::vector<RegionInput> operands;
    for (const View& view : inputs) operands.push_back(input_of(view));
    if (row.tensors == 2 && !row.condition && dimension < 0 && input_.chance(3))
      operands.back() = {codegen::OperandKind::Scalar, {}, number(2, common), {}};
    for (double value : row.tail) operands.push_back({codegen::OperandKind::Scalar, {}, number(value, common), {}});
    Dims along(space.size(), 0);
    if (row.positions) {
      along[static_cast<size_t>(dimension)] = 1;
      operands.push_back({codegen::OperandKind::Index, {}, Scalar::of(int64_t{0}), along});
    }
    if (row.counts) {
      const double count = static_cast<double>(space[static_cast<size_t>(dimension)]);
      operands.push_back({codegen::OperandKind::Scalar, {}, Scalar::of(count), {}});
    }
    std::vector<TensorArgument> written;
    for (const View& view : outputs) written.push_back(argument(view));
    record(row.name, space, reduced, written, operands, common, row.attributes);
  }

  static Scalar number(double value, DType dtype) {
    return is_float(dtype) ? Scalar::of(value) : Scalar::of(static_cast<int64_t>(value));
  }

  void kernel() {
    View from{tensor_of(DType::Float32, 24), 0, Dims{12}, Dims{static_cast<int64_t>(1 + input_.pick(2))}};
    View to{tensor_of(DType::Float32, 24), 0, Dims{12}, Dims{static_cast<int64_t>(1 + input_.pick(2))}};
    const size_t kind = input_.pick(8);
    const TensorArgument output = argument(to), source = argument(from);
    say("kernel {} -> {} from {}", kind, describe(to), describe(from));
    if (kind == 7) {
      const int64_t value = input_.byte();
      eager::record_kernel(*stream_, failing_kernel, {&output, 1}, {&source, 1}, {&value, 1}, {}, false, 1);
    } else if (kind >= 4 && from.tensor != to.tensor) {
      eager::record_kernel(*stream_, accumulate_kernel, {&output, 1}, {&source, 1}, {}, {}, true, 1);
    } else {
      eager::record_kernel(*stream_, reverse_kernel, {&output, 1}, {&source, 1}, {}, {}, false, 1);
    }
  }

  // From here on commands go to the other stream, which waits for this one.
  void switch_streams() {
    eager::Stream& next = stream_ == &second_stream() ? eager::default_stream(0) : second_stream();
    const auto event = eager::create_event(input_.chance(2));
    eager::record_event(*stream_, event);
    eager::wait_event(next, event);
    if (input_.chance(3)) eager::synchronize_event(*event);
    if (input_.chance(3)) eager::query_event(*event);
    stream_ = &next;
    say("stream {}", eager::stream_id(next));
  }

  void read(size_t index) {
    guarded([&] {
      const Tensor& tensor = tensors_[index];
      say("read t{}", index);
      eager::synchronize_for_read(*stream_, tensor.block, eager::FlushReason::HostRead);
      if (!runtime::driver().computes()) return;
      std::string line = fmt::format("{}:", dtype_name(tensor.dtype));
      const auto* bytes = static_cast<const std::byte*>(tensor.block->address);
      for (int64_t i = 0; i < tensor.numel; ++i) {
        const std::byte* element = bytes + i * static_cast<int64_t>(dtype_size(tensor.dtype));
        if (is_float(tensor.dtype) && std::isnan(load_as_double(tensor.dtype, element))) {
          line += " nan";
          continue;
        }
        uint64_t bits = 0;
        std::memcpy(&bits, element, dtype_size(tensor.dtype));
        line += fmt::format(" {:x}", bits);
      }
      transcript_.lines.push_back(std::move(line));
    });
  }

  // After an error a part may have a value where the whole has none.
  void read_part(size_t index) {
    const View part = view_of(index, any_space(), true);
    say("read {}", describe(part));
    eager::synchronize_for_read(*stream_, argument(part), eager::FlushReason::HostRead);
    transcript_.lines.push_back("read a part");
  }

  void step() {
    const size_t kind = input_.pick(32);
    if (kind < 16) {
      region(elementwise_rows()[input_.pick(elementwise_rows().size())], Combine::None);
    } else if (kind < 20) {
      region(reduction_rows()[input_.pick(reduction_rows().size())], Combine::Any);
    } else if (kind < 22) {
      region(normalization_rows()[input_.pick(normalization_rows().size())], Combine::Innermost);
    } else if (kind < 25) {
      kernel();
    } else if (kind < 28) {
      if (tensors_.size() > 3) destroy(3 + input_.pick(tensors_.size() - 3));
    } else if (kind == 28) {
      switch_streams();
    } else if (kind == 29) {
      read(input_.pick(tensors_.size()));
    } else {
      rare();
    }
  }

  void rare() {
    const size_t kind = input_.pick(7);
    say("rare {}", kind);
    switch (kind) {
      case 0:
        eager::flush(*stream_, eager::FlushReason::Explicit);
        break;
      case 1:
        eager::synchronize(*stream_, eager::FlushReason::Synchronize);
        break;
      case 2:
        eager::query(*stream_);
        break;
      case 3:
        eager::export_block(tensors_[input_.pick(tensors_.size())].block);
        break;
      case 4:
        eager::record_callback(*stream_, [] {});
        break;
      case 5:
        eager::record_callback(*stream_, [value = input_.byte()] { fail(ErrorKind::Value, "refused {}", value); });
        break;
      case 6:
        read_part(tensor_of(kDTypes[input_.pick(std::size(kDTypes))], 24));
        break;
    }
  }

  Input input_;
  const bool exact_;
  eager::Stream* stream_ = nullptr;
  std::vector<Tensor> tensors_;
  Transcript transcript_;
};

void compare(const char* what, const Transcript& expected, const Transcript& actual) {
  if (expected == actual) return;
  for (size_t i = 0; i < std::max(expected.lines.size(), actual.lines.size()); ++i) {
    const std::string a = i < expected.lines.size() ? expected.lines[i] : "nothing";
    const std::string b = i < actual.lines.size() ? actual.lines[i] : "nothing";
    if (a != b) finding("{}, line {}:\n  {}\n  {}", what, i, a, b);
  }
}

void run(Input input) {
  const bool compiled = input.chance(8);  // code generation is slow
  const bool exact = input.chance(2);
  static constexpr uint32_t kWindows[] = {512, 512, 193, 2};
  eager::settings().window_limit = kWindows[input.pick(std::size(kWindows))];
  eager::set_synchronous_compile(true);
  if (!runtime::driver().computes()) {
    Program(input, exact).run();
    return;
  }
  say("compiled {} exact {} window {}", compiled, exact, eager::settings().window_limit.load());
  eager::set_interpret(!compiled);
  eager::set_mode(eager::Mode::Immediate);
  const Transcript expected = Program(input, exact).run();
  eager::set_mode(eager::Mode::Adaptive);
  compare("fused", expected, Program(input, exact).run());
  if (!compiled) return;
  compare("fused, from plans", expected, Program(input, exact).run());
  if (!exact) return;
  eager::set_interpret(true);
  compare("interpreted", expected, Program(input, exact).run());
}

}  // namespace
}  // namespace neuron::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (neuron::set_log_level(-1), true);
  static_cast<void>(quiet);
  neuron::fuzz::run({data, size});
  return 0;
}
