// The command line itself: subcommands and options, their help, their completions and their manual page, all from one
// description.
#pragma once

#include <CLI/CLI.hpp>
#include <map>

#include "arguments.hpp"

namespace cenote::cli {

// Everything that can be said, and what was said.
struct CommandLine {
  CommandLine();

  CLI::App app;
  PoolArguments pool;
  GradArguments grad;
  ExplainArguments explain;
  CheckArguments check;
  BenchArguments bench;
  TourArguments tour;
  std::string shell;  // of `completions`

  [[nodiscard]] int run() const;  // the subcommand that was chosen
};

// The words that an option takes, where there are few: for completions and help.
std::vector<std::string> words_of(const CLI::Option& option);

std::string help_page(const CLI::App& app);
std::string completion_script(const CLI::App& app, const std::string& shell);
std::string manual_page(const CLI::App& app);

}  // namespace cenote::cli
