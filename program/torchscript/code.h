#pragma once
// The code in a TorchScript archive (code/__torch__/….py) as a tree. It is a small Python: torch.jit prints every
// operator as a call, every branch and loop as a statement, and every type beside its name.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof::script {

struct Expression {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    variable,    ///< `text` is its name
    qualified,   ///< torch.add, ops.prim.dtype, __torch__.models.Net, CONSTANTS.c0: `text`
    attribute,   ///< parts[0].text
    subscript,   ///< parts[0][parts[1], …]
    call,        ///< parts[0](parts[1], …)
    list,        ///< of parts
    tuple,       ///< of parts
    dictionary,  ///< of parts: key, value, key, value …
  };
  Kind kind = Kind::none;
  int line = 0;
  int height = 1;       ///< of the tree, which is at most 200
  int64_t integer = 0;  ///< of a boolean, too
  double real = 0;
  std::string text;
  std::vector<Expression> parts;
  std::vector<std::string> keywords;  ///< of a call: per part, the name that it is passed by, or empty
};

struct Statement {
  enum class Kind : uint8_t {
    assignment,    ///< targets = value
    expression,    ///< value
    branch,        ///< if value: body, else: otherwise
    while_loop,    ///< while value: body
    for_loop,      ///< for targets[0] in value: body
    return_value,  ///< return value
    pass,
  };
  Kind kind = Kind::pass;
  int line = 0;
  std::vector<Expression> targets;
  Expression value;
  std::vector<Statement> body, otherwise;
};

struct Parameter {
  std::string name;
  Expression type;
  bool has_default = false;
  Expression default_value;
};

struct Function {
  std::string name;
  std::string file;  ///< in the archive, for messages
  std::vector<Parameter> parameters;
  std::vector<Statement> body;
};

struct Class {
  std::string name;  ///< "__torch__.torch.nn.modules.conv.Conv2d"
  bool is_module = false;
  bool is_tuple = false;                ///< a NamedTuple
  std::vector<std::string> parameters;  ///< names of attributes
  std::vector<std::string> buffers;
  std::vector<std::string> fields;              ///< all attributes, in order
  std::map<std::string, Expression> constants;  ///< attributes with a value in the code
  std::map<std::string, Function> methods;
};

/// What all files of an archive define, by qualified name.
struct Code {
  std::map<std::string, Function> functions;
  std::map<std::string, Class> classes;
};

/// Adds what one file defines. `module`: "__torch__.torch.nn.functional"; `file`: for messages. Errors: what is no code
/// that torch.jit prints, with its line; more than 200 expressions or blocks inside each other.
void parse_code(std::string_view text, const std::string& module, const std::string& file, Code& code);

}  // namespace metaprof::script
