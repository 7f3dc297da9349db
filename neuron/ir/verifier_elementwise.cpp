// Rules of sources, elementwise operations and composites.
#include <algorithm>
#include <iterator>

#include "neuron/base/error.h"
#include "neuron/ir/verifier.h"
#include "neuron/ir/verifier_rules.h"

namespace neuron::ir {

namespace {

// Sets of dtype classes, one bit each.
constexpr int boolean = 1, unsigned_ = 2, signed_ = 4, floating = 8, complex = 16;
constexpr int integer = unsigned_ | signed_;

int class_bit(DType dtype) { return 1 << static_cast<int>(dtype_class(dtype)); }

// The classes StableHLO's specification allows.
int allowed_classes(Opcode opcode) {
  switch (opcode) {
    case Opcode::Abs:
    case Opcode::Sign:
      return signed_ | floating | complex;
    case Opcode::Negate:
    case Opcode::Divide:
    case Opcode::Power:
    case Opcode::Subtract:
      return integer | floating | complex;
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Maximum:
    case Opcode::Minimum:
      return boolean | integer | floating | complex;
    case Opcode::Remainder:
      return integer | floating;
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
      return boolean | integer;
    case Opcode::CountLeadingZeros:
    case Opcode::PopulationCount:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
      return integer;
    case Opcode::Atan2:
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::IsFinite:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
      return floating;
    default:
      return floating | complex;
  }
}

DType real_dtype(DType dtype) {
  if (dtype == DType::Complex64) return DType::Float32;
  if (dtype == DType::Complex128) return DType::Float64;
  return dtype;
}

void require_class(const Site& site) {
  DType dtype = site.operand(0).dtype;
  site.require(class_bit(dtype) & allowed_classes(site.operation.opcode), "it is not defined for {}",
               dtype_name(dtype));
}

void require_equal_operands(const Site& site) {
  for (size_t i = 1; i < site.operands(); ++i)
    site.require(site.operand(i) == site.operand(0), "operands must have one type");
}

void require_result(const Site& site, const Type& type) {
  site.require(site.result() == type, "the result should be {}", to_string(type));
}

}  // namespace

void check_constant(const Site& site) {
  const auto& literal = site.attributes().get<Literal>("value");
  require_result(site, literal.type);
  size_t count = 1, size = dtype_size(literal.type.dtype);
  bool symbolic = false;
  for (Dim dim : literal.type.dims) {
    symbolic |= is_symbolic(dim);
    count *= is_symbolic(dim) ? 1 : static_cast<size_t>(dim);
  }
  site.require(literal.is_splat() || (!symbolic && literal.bytes.size() == count * size),
               "the literal has {} bytes, wanted {} or {}", literal.bytes.size(), size, count * size);
}

void check_iota(const Site& site) {
  int64_t dimension = site.attributes().get_int("iota_dimension");
  site.require(dimension >= 0 && dimension < site.result().rank(), "iota_dimension is {}, the rank {}", dimension,
               site.result().rank());
  site.require(site.result().dtype != DType::Bool, "it is not defined for i1");
}

void check_unary(const Site& site) {
  require_class(site);
  Type result = site.operand(0);
  switch (site.operation.opcode) {
    case Opcode::IsFinite:
      result.dtype = DType::Bool;
      break;
    case Opcode::Abs:
    case Opcode::Real:
    case Opcode::Imag:
      result.dtype = real_dtype(result.dtype);
      break;
    default:
      break;
  }
  require_result(site, result);
}

void check_convert(const Site& site) { require_result(site, site.operand(0).with(site.result().dtype)); }

void check_bitcast_convert(const Site& site) {
  require_result(site, site.operand(0).with(site.result().dtype));
  site.require(dtype_size(site.operand(0).dtype) == dtype_size(site.result().dtype), "element sizes must be equal");
}

void check_binary(const Site& site) {
  require_equal_operands(site);
  require_class(site);
  require_result(site, site.operand(0));
}

void check_compare(const Site& site) {
  require_equal_operands(site);
  auto direction = site.attributes().get<ComparisonDirection>("comparison_direction");
  bool ordered = direction != ComparisonDirection::EQ && direction != ComparisonDirection::NE;
  site.require(!ordered || !is_complex(site.operand(0).dtype), "complex numbers compare only EQ and NE");
  require_result(site, site.operand(0).with(DType::Bool));
}

void check_complex(const Site& site) {
  require_equal_operands(site);
  DType dtype = site.operand(0).dtype;
  site.require(dtype == DType::Float32 || dtype == DType::Float64, "operands must be f32 or f64");
  require_result(site, site.operand(0).with(dtype == DType::Float32 ? DType::Complex64 : DType::Complex128));
}

void check_select(const Site& site) {
  site.require(site.operand(1) == site.operand(2), "the second and third operand must have one type");
  bool fits = site.operand(0) == site.operand(1).with(DType::Bool) || site.operand(0) == Type{DType::Bool, {}};
  site.require(fits, "the predicate must be i1 of the same dimensions, or of rank 0");
  require_result(site, site.operand(1));
}

void check_clamp(const Site& site) {
  const Type& x = site.operand(1);
  site.require(!is_complex(x.dtype), "it is not defined for {}", dtype_name(x.dtype));
  for (size_t i : {0, 2})
    site.require(site.operand(i) == x || site.operand(i) == Type{x.dtype, {}},
                 "a bound must have the second operand's type, or be rank 0 of its dtype");
  require_result(site, x);
}

namespace {

void check_random(const Site& site, std::string_view name) {
  const DType dtype = site.result().dtype;
  const bool bits = name == "neuron.random_bits";
  site.require(site.operand(0).dtype == DType::Int64, "operands must be i64");
  require_result(site, site.operand(0).with(dtype));
  site.require(
      bits ? dtype == DType::UInt32 || dtype == DType::UInt64 : dtype == DType::Float32 || dtype == DType::Float64,
      "{} gives {}", name, bits ? "ui32 or ui64" : "f32 or f64");
}

}  // namespace

void check_composite(const Site& site) {
  std::string_view name = site.attributes().get<std::string>("name");
  constexpr std::string_view prefix = "neuron.";
  site.require(name.starts_with(prefix) && name.size() > prefix.size(), "its name '{}' does not start with '{}'", name,
               prefix);
  int operands = function_operands(name.substr(prefix.size()));
  if (operands != 0) {
    site.require(site.operands() == static_cast<size_t>(operands), "{} takes {} operands", name, operands);
    require_equal_operands(site);
    site.require(site.results() == 1, "{} gives one result", name);
    if (name.starts_with("neuron.random_")) return check_random(site, name);
    require_result(site, site.operand(0));
    static constexpr std::string_view real_only[] = {"digamma",         "erf",    "erfc", "erfinv", "fma",
                                                     "gelu_derivative", "lgamma", "trunc"};
    bool on_reals =
        std::find(std::begin(real_only), std::end(real_only), name.substr(prefix.size())) != std::end(real_only);
    site.require(class_bit(site.operand(0).dtype) & (on_reals ? floating : floating | complex),
                 "{} is not defined for {}", name, dtype_name(site.operand(0).dtype));
    return;
  }
  site.require(site.operation.regions.size() == 1, "{} is no function of functions.def and has no decomposition", name);
  const Graph& body = *site.operation.regions[0];
  site.require(body.parameters().size() == site.operands() && body.results().size() == site.results(),
               "the decomposition of {} takes {} operands and gives {} results", name, body.parameters().size(),
               body.results().size());
  for (size_t i = 0; i < site.operands(); ++i)
    site.require(body.type(body.parameters()[i]) == site.operand(i), "parameter {} of the decomposition of {} is {}", i,
                 name, to_string(body.type(body.parameters()[i])));
  for (size_t i = 0; i < site.results(); ++i)
    site.require(body.type(body.results()[i]) == site.result(i), "result {} of the decomposition of {} is {}", i, name,
                 to_string(body.type(body.results()[i])));
}

}  // namespace neuron::ir
