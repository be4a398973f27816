#pragma once
// The file of defaults: what options are when neither the command line nor the environment has them.

#include <string>

namespace metaprof {

/// METAPROF_CONFIG, else metaprof.toml here, else metaprof/config.toml in the user's folder of configurations
/// (XDG_CONFIG_HOME, else ~/.config). Empty: there is none. METAPROF_CONFIG=/dev/null asks for none.
std::string defaults_file();

}  // namespace metaprof
