#pragma once
// What an operator takes: the kinds of values that its schema allows, and what its record says beyond the schema
// (Facts::takes), parsed. Only who checks calls or shows records reads this.

#include <string_view>
#include <vector>

#include "meta/op/schema.h"

namespace metaprof {

/// A number that a requirement speaks of. Of a list of tensors, that of each.
struct Term {
  enum class Of : uint8_t {
    constant,  ///< 3
    value,     ///< chunks: the argument, a number
    each,      ///< stride.each: every number of a list
    length,    ///< tensors.length: of a list
    dims,      ///< self.dim: how many dimensions a tensor has
    elements,  ///< self.numel
    sizes,     ///< self.sizes: only compared with those of another tensor
    size,      ///< self.size(-1); self.size(dim): of the dimension that another argument names
  };
  Of of = Of::constant;
  uint8_t argument = 0;
  uint8_t dimension = 0;  ///< of `size`: the argument that names it, if `named`
  bool named = false;
  int64_t constant = 0;  ///< of `size`: the dimension, unless `named`
};

/// "self.dim >= 2": holds where an argument that it speaks of is not given, and where its condition ("… if FLAG",
/// "… unless FLAG") does not.
struct Requirement {
  enum class Relation : uint8_t {
    equal,
    not_equal,
    less,
    at_most,
    more,
    at_least,
    same_sizes,    ///< indices.sizes == self.sizes
    dimension_of,  ///< dim in self: one or several dimensions of a tensor, the last ones by negative numbers
    results,  ///< results == chunks, results == self.size(dim) / split_size: how many tensors the call makes, of which
              ///< there is a bound; `right` is what is divided by, 1 by default
    given,        ///< running_mean given: not None
    sparse,       ///< self sparse: of any sparse layout
    strided,      ///< self strided: of none
    equal_lists,  ///< lists of one length: all lists that are given, of at least one element
  };
  Term left;
  Relation relation = Relation::equal;
  Term right;
  int flag = -1;        ///< the argument that the condition speaks of; -1: there is none
  bool flag_is = true;  ///< what it has to be
};

struct Requirements {
  std::vector<Requirement> all;
  std::vector<std::string> texts;  ///< as they are written, for messages
};

/// What a schema and the text beyond it come to.
struct ParsedTakes {
  SmallVector<uint16_t, 8> kinds;  ///< as Operator::takes
  Requirements beyond_schema;
};

/// Errors: the text contradicts the schema.
ParsedTakes parse_takes(const Schema& schema, std::string_view text);

/// "an integer", "a list of numbers": what an argument of this type takes, for messages.
std::string_view kind_wanted(const Argument& argument);

}  // namespace metaprof
