// The command `cenote`: what goes wrong becomes one line and an exit code.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

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

// CLI11's complaints about values, in our words.
std::string reworded(const std::string& text, const std::string& command) {
  for (const std::string_view unknown :
       {"The following argument was not expected: ", "The following arguments were not expected: "})
    if (text.starts_with(unknown))
      return "'" + text.substr(unknown.size()) + "' is nothing that cenote" + command + " takes";
  constexpr std::string_view conversion = "Could not convert: ";
  if (const auto equals = text.find(" = "); text.starts_with(conversion) && equals != std::string::npos)
    return text.substr(conversion.size(), equals - conversion.size()) + " is '" + text.substr(equals + 3) +
           "'; a number is legal";
  if (const auto most = text.find(": At Most 1 required"); most != std::string::npos)
    return text.substr(0, most) + " is given more than once; once is legal";
  return text;
}

int fail_to_print() {
  return fail(data_error, std::string("standard output: cannot be written: ") + std::strerror(errno));
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
      line.app.exit(wanted);
      std::cout.flush();
      return std::cout.good() ? 0 : fail_to_print();
    } catch (const CLI::ParseError& error) {
      const auto chosen = line.app.get_subcommands();
      if (chosen.empty()) {
        std::string names;
        for (const CLI::App* command : line.app.get_subcommands([](const CLI::App*) { return true; }))
          names += (names.empty() ? "" : ", ") + command->get_name();
        const std::string said = argc == 1 ? "there is no command" : "the command is '" + std::string(argv[1]) + "'";
        return fail(usage_error, said + "; legal are " + names + " (see cenote --help)");
      }
      const std::string of = " " + chosen.front()->get_name();
      return fail(usage_error, reworded(error.what(), of) + " (see cenote" + of + " --help)");
    }
    const int code = line.run();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return fail_to_print();
    return code;
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
