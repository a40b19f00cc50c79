// The command `cenote`: what goes wrong becomes one line and an exit code.
#include <cstdio>

#include "command_line.hpp"
#include "files/output_file.hpp"

namespace {

constexpr int data_error = 1;
constexpr int usage_error = 2;

int fail(int code, const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  std::fprintf(stderr, "cenote: %s\n", line.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cenote;
  cli::clean_up_on_signals();
  try {
    cli::CommandLine line;
    try {
      line.app.parse(argc, argv);
    } catch (const CLI::Success& wanted) {  // --help, --version
      return line.app.exit(wanted);
    } catch (const CLI::ParseError& error) {
      const auto chosen = line.app.get_subcommands();
      if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
        std::string names;
        for (const CLI::App* command : line.app.get_subcommands([](const CLI::App*) { return true; }))
          names += (names.empty() ? "" : ", ") + command->get_name();
        return fail(usage_error, "the command is '" + std::string(argv[1]) + "'; legal are " + names);
      }
      const std::string of = chosen.empty() ? "" : " " + chosen.front()->get_name();
      return fail(usage_error, std::string(error.what()) + " (see cenote" + of + " --help)");
    }
    return line.run();
  } catch (const cli::UsageError& error) {
    return fail(usage_error, error.what());
  } catch (const cenote::Error& error) {
    return fail(usage_error, error.what());
  } catch (const std::bad_alloc&) {
    return fail(data_error, "out of memory");
  } catch (const std::exception& error) {
    return fail(data_error, error.what());
  }
}
