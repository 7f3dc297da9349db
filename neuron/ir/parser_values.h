// Internal to the parser: types and attribute values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neuron/ir/graph.h"
#include "neuron/ir/text_cursor.h"

namespace neuron::ir {

// No tensor of ours is larger; sizes beyond it would overflow when multiplied.
inline constexpr int64_t most_elements = int64_t{1} << 40;

// An entry of a list attribute: a dimension, an index, a stride, a padding. Refuses what is beyond any tensor's size.
int64_t parse_entry(TextCursor& cursor);
// tensor<2x3xf32>. Refuses '?' and more elements than a graph can hold.
Type parse_type(TextCursor& cursor);
DType parse_dtype(TextCursor& cursor);
// [1, 2]
std::vector<int64_t> parse_list(TextCursor& cursor);
// dense<…> : type
Literal parse_literal(TextCursor& cursor);
// An attribute of a composite, in the printer's self-describing syntax.
AttributeValue parse_attribute(TextCursor& cursor);
// array<i64: 1, 2>, or array<i1: true, false> as 1 and 0.
std::vector<int64_t> parse_array(TextCursor& cursor);
ComparisonDirection parse_direction(TextCursor& cursor);
bool parse_bool(TextCursor& cursor);

}  // namespace neuron::ir
