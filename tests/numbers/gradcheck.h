#pragma once
// Gradients of our engine and formulas against central differences (torch.autograd.gradcheck's tolerances).

#include <string>

#include "tests/numbers/example_program.h"

namespace metaprof {

struct Checked {
  int gradients = 0;  ///< elements that were compared
  int second_gradients = 0;
  std::string failure;      ///< the first difference; empty: none
  std::string not_checked;  ///< why nothing was compared
  std::string no_second;    ///< why no second gradient was compared
};

/// First, then second derivatives of one example. `op` is of that version of the framework.
Checked gradcheck(const Operator& op, std::string_view example, const char* device = "cpu",
                  FrameworkVersion framework = {});

}  // namespace metaprof
