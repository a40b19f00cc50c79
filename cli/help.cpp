// Help, completions and the manual page, made from the description of the command line.
#include <algorithm>
#include <utility>

#include "command_line.hpp"

namespace cenote::cli {

namespace {

using Options = std::vector<const CLI::Option*>;

Options options_of(const CLI::App& app, bool positional) {
  Options out;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() == positional && (positional || option->nonpositional())) out.push_back(option);
  return out;
}

// Groups in the order of their first option, help last.
std::vector<std::string> groups_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : options_of(app, false))
    if (std::find(out.begin(), out.end(), option->get_group()) == out.end()) out.push_back(option->get_group());
  const auto plain = std::find(out.begin(), out.end(), "Options");
  if (plain != out.end()) std::rotate(plain, plain + 1, out.end());
  return out;
}

// "-k, --kernel SIZE".
std::string spelling(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "--" : ", --") + name;
  if (option.get_items_expected_max() > 0) out += " " + option.get_type_name();
  return out;
}

std::string usage(const CLI::App& app) {
  std::string out = app.get_parent() == nullptr ? "cenote COMMAND" : "cenote " + app.get_name();
  for (const CLI::Option* option : options_of(app, true))
    out += option->get_required() ? " " + option->get_name(true) : " [" + option->get_name(true) + "]";
  for (const CLI::Option* option : options_of(app, false))
    if (option->get_required()) out += " -" + option->get_snames().front() + " " + option->get_type_name();
  return out + " [OPTIONS]";
}

constexpr std::size_t page_width = 80;

std::string entry(const std::string& left, const std::string& right) {
  constexpr std::size_t column = 22;
  std::string out = "  " + left;
  out.resize(std::max(out.size() + 1, column), ' ');
  return out + right;
}
std::string line(const std::string& left, const std::string& right) { return entry(left, right) + "\n"; }

// A screen has room for the first sentence; the manual page has the others.
std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

// Two entries on a line where both are short.
std::string in_columns(const std::vector<std::string>& entries) {
  constexpr std::size_t half = page_width / 2;
  std::string out;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::string row = entries[i];
    if (row.size() < half && i + 1 < entries.size() && entries[i + 1].size() <= half) {
      row.resize(half, ' ');
      row += entries[++i];
    }
    out += row + "\n";
  }
  return out;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> out;
  for (const std::string& name : option.get_snames()) out.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.push_back("--" + name);
  return out;
}

bool takes_file(const CLI::Option& option) { return option.get_type_name() == "FILE"; }

// What may stand where a command expects a word that is no option.
std::string first_words(const CLI::App& command) {
  for (const CLI::Option* option : options_of(command, true)) {
    if (option->get_name(true) == "SHELL") return "bash zsh fish man";
    if (const auto words = words_of(*option); !words.empty()) return joined(words);
  }
  return "";
}

std::string bash_script(const CLI::App& app) {
  std::string names;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    std::string options;
    std::string values;
    for (const CLI::Option* option : options_of(*command, false)) {
      options += (options.empty() ? "" : " ") + joined(names_of(*option));
      std::string patterns;
      for (const std::string& name : names_of(*option)) patterns += (patterns.empty() ? "" : "|") + name;
      if (const auto words = words_of(*option); !words.empty())
        values +=
            "        " + patterns + ") COMPREPLY=($(compgen -W '" + joined(words) + "' -- \"$current\")); return ;;\n";
    }
    const std::string& name = command->get_name();
    const std::string first = first_words(*command);
    cases.append("    ").append(name).append(")\n      case $previous in\n").append(values);
    if (!first.empty())
      cases.append("        ")
          .append(name)
          .append(") COMPREPLY=($(compgen -W '")
          .append(first)
          .append("' -- \"$current\")); return ;;\n");
    cases.append("      esac\n      options='").append(options).append("' ;;\n");
  }
  return "# bash completion of cenote, made by `cenote completions bash`\n"
         "_cenote() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         names +
         " --help --version' -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "  case $current in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
         "    *) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _cenote cenote\n";
}

// The text with `before` in front of each of these characters.
std::string escaped(const std::string& text, const std::string& special, const std::string& before = "\\") {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) out += before;
    out += c;
  }
  return out;
}

// In single quotes. Those of zsh end at the next one, whatever stands before it.
std::string zsh_quoted(const std::string& text) { return "'" + escaped(text, "'", "'\\'") + "'"; }
std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "\\'") + "'"; }

std::string zsh_script(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    commands += "    " + zsh_quoted(command->get_name() + ":" + command->get_description()) + "\n";
    cases += "    " + command->get_name() + ")\n      _arguments -s \\\n";
    for (const CLI::Option* option : options_of(*command, false))
      for (const std::string& name : names_of(*option)) {
        std::string entry = name + "[" + escaped(option->get_description(), ":[]\\") + "]";
        if (option->get_items_expected_max() > 0) {
          const auto words = words_of(*option);
          entry += ":" + option->get_type_name() + ":" + (takes_file(*option) ? "_files" : "(" + joined(words) + " )");
        }
        cases += "        " + zsh_quoted(entry) + " \\\n";
      }
    const std::string words = first_words(*command);
    if (!words.empty()) cases += "        '1:word:(" + words + ")' \\\n";
    cases += "        '*:file:_files' ;;\n";
  }
  return "#compdef cenote\n# zsh completion of cenote, made by `cenote completions zsh`\n_cenote() {\n  local -a "
         "commands\n  commands=(\n" +
         commands +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n" +
         cases + "  esac\n}\n_cenote \"$@\"\n";
}

std::string fish_script(const CLI::App& app) {
  std::string out = "# fish completion of cenote, made by `cenote completions fish`\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    out += "complete -c cenote -n __fish_use_subcommand -f -a " + name + " -d " +
           fish_quoted(command->get_description()) + "\n";
    const std::string when = "complete -c cenote -n '__fish_seen_subcommand_from " + name + "'";
    if (const std::string words = first_words(*command); !words.empty())
      out.append(when).append(" -a '").append(words).append("'\n");
    for (const CLI::Option* option : options_of(*command, false)) {
      out += when;
      for (const std::string& letter : option->get_snames()) out += " -s " + letter;
      for (const std::string& word : option->get_lnames()) out += " -l " + word;
      if (option->get_items_expected_max() > 0) out += takes_file(*option) ? " -r" : " -x";
      if (const auto words = words_of(*option); !words.empty()) out += " -a '" + joined(words) + "'";
      out += " -d " + fish_quoted(option->get_description()) + "\n";
    }
  }
  return out;
}

std::string roff(const std::string& text) {
  const std::string out = escaped(text, "\\-");
  return (out.starts_with('.') || out.starts_with('\'') ? "\\&" : "") + out;
}

}  // namespace

std::string help_page(const CLI::App& app) {
  std::string out = app.get_description() + "\nUsage: " + usage(app) + "\n";
  if (const auto commands = commands_of(app); !commands.empty()) {
    out += "\nCommands:\n";
    for (const CLI::App* command : commands) out += line(command->get_name(), command->get_description());
  }
  for (const CLI::Option* option : options_of(app, true))
    out += line(option->get_name(true), option->get_description());
  std::vector<std::string> entries;
  for (const std::string& group : groups_of(app)) {
    // The first group follows what a command is given, and help itself the last one: neither needs a title.
    if (group != "Options" && group != "Files") {
      out += in_columns(std::exchange(entries, {}));
      out += group + ":\n";
    }
    for (const CLI::Option* option : options_of(app, false))
      if (option->get_group() == group)
        entries.push_back(entry(spelling(*option), first_sentence(option->get_description())));
  }
  out += in_columns(entries);
  return out + "Examples:\n" + app.get_footer() + "\n";
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  if (shell == "fish") return fish_script(app);
  throw UsageError("the shell is '" + shell + "'; legal are bash, zsh, fish, and man for the manual page");
}

std::string manual_page(const CLI::App& app) {
  std::string out = ".TH CENOTE 1 \"\" \"cenote " CENOTE_VERSION "\" \"User Commands\"\n.SH NAME\ncenote \\- " +
                    roff(app.get_description()) + "\n.SH SYNOPSIS\n";
  for (const CLI::App* command : commands_of(app)) out += ".B " + roff(usage(*command)) + "\n.br\n";
  out +=
      ".SH DESCRIPTION\nPools arrays and pictures by maximum, minimum, average, sum, smooth maximum or Lp norm, over "
      "sliding, adaptive or\n"
      "global windows. Formats are recognised by content: NPY, PNG, TIFF. A file appears whole or not at all.\n.SH "
      "COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    out += ".SS " + command->get_name() + "\n" + roff(command->get_description()) + "\n";
    for (const bool positional : {true, false})
      for (const CLI::Option* option : options_of(*command, positional))
        out += ".TP\n.B " + roff(positional ? option->get_name(true) : spelling(*option)) + "\n" +
               roff(option->get_description()) + "\n";
    out += ".PP\n.nf\n" + roff(command->get_footer()) + "\n.fi\n";
  }
  return out +
         ".SH EXIT STATUS\n0 if everything went well, 1 if a file is at fault (or\n.B check\nfound a difference), 2 if "
         "the command line is.\n"
         ".SH ENVIRONMENT\n.TP\n.B CENOTE_THREADS\nthreads, where \\-\\-threads is not given\n.TP\n.B CENOTE_TARGET\n"
         "instruction set, where \\-\\-target is not given\n.TP\n.B NO_COLOR\nno colours, whatever the terminal can "
         "show\n";
}

}  // namespace cenote::cli
