#include "command_line.hpp"

#include <algorithm>

namespace cenote::cli {

namespace {

CLI::Option* text(CLI::App& app, const char* name, std::string& to, const char* kind, const char* meaning) {
  return app.add_option(name, to, meaning)->type_name(kind);
}
template <class T>
CLI::Option* value(CLI::App& app, const char* name, T& to, const char* kind, const char* meaning) {
  return app.add_option(name, to, meaning)->type_name(kind);
}
CLI::Option* flag(CLI::App& app, const char* name, bool& to, const char* meaning) {
  return app.add_flag(name, to, meaning);
}

constexpr const char* windows_group = "Windows (SIZE: one number for all axes, or one per axis: 3x3) and operators";

void add_operator(CLI::App& app, OperatorArguments& to) {
  text(app, "OP", to.name, "", "max, min, average, sum, smooth-max or lp")->required();
}

void add_windows(CLI::App& app, WindowArguments& to) {
  const std::string group = windows_group;
  text(app, "-k,--kernel", to.kernel, "SIZE", "sliding windows")->group(group);
  text(app, "-s,--stride", to.stride, "SIZE", "default: kernel. The cells from one window to the next")->group(group);
  text(app, "-p,--padding", to.padding, "PAD", "1, 1x1, low:high per axis, same, same-lower or valid")->group(group);
  text(app, "-d,--dilation", to.dilation, "SIZE", "between taps. The cells from one tap to the next")->group(group);
  flag(app, "--ceil", to.ceil, "round sizes up. Windows may then overhang the padded input")->group(group);
  text(app, "--adaptive", to.adaptive, "SIZE", "output size. The windows that give it are worked out")->group(group);
  flag(app, "--global", to.global, "one window")->group(group);
  flag(app, "--drop", to.drop, "no axes of size 1. Belongs to --global, which otherwise keeps the axes that it pools")
      ->group(group);
  text(app, "-a,--axes", to.axes, "AXES", "as in 1,2 or -2,-1. The axes to pool; by default the last ones")
      ->group(group);
  flag(app, "--channels-last", to.channels_last, "as in pictures. The last axis is none of space, as in pictures")
      ->group(group);
}

void add_operator_options(CLI::App& app, OperatorArguments& to) {
  const std::string group = windows_group;
  value(app, "--ties", to.ties, "WORD", "first, all, split. Whom gradients reach under max and min")->group(group);
  value(app, "--divisor", to.divisor, "WORD",
        "padded, real, N. What average divides by: taps in the padded input (default), real taps, or a number")
      ->group(group);
  value(app, "--beta", to.beta, "X", "of smooth-max. Inverse temperature; negative for a smooth minimum")->group(group);
  value(app, "--pads", to.pads, "WORD", "zeros or ignore. How padding counts for smooth-max")->group(group);
  value(app, "--p", to.p, "X", "of lp (default 2). The power")->group(group);
}

template <class Bytes>
void add_memory(CLI::App& app, Bytes& to, const char* meaning) {
  app.add_option_function<std::string>(
         "--memory", [&to](const std::string& given) { to = make_bytes(given, "--memory"); }, meaning)
      ->type_name("SIZE")
      ->group("Running");
}

void add_run(CLI::App& app, RunArguments& to) {
  const std::string group = "Running";
  value(app, "-t,--threads", to.threads, "N", "default: per core. At most so many")->group(group);
  text(app, "--target", to.target, "NAME", "as in avx2. At most this instruction set")->group(group);
}

void add_dtype(CLI::App& app, std::optional<Element>& to, const char* meaning) {
  app.add_option_function<std::string>(
         "--dtype",
         [&to](const std::string& given) {
           to = element_named(given);
           if (!to) throw UsageError("--dtype is '" + given + "'; legal are " + every_element());
         },
         meaning)
      ->type_name("TYPE")
      ->group("Files");
}

void add_pool(CLI::App& app, PoolArguments& to) {
  add_operator(app, to.op);
  text(app, "INPUT", to.input, "", "NPY, PNG or TIFF; - reads the standard input")->required();
  text(app, "-o,--output", to.output, "FILE", "where the result goes; - is the standard output")
      ->required()
      ->group("Files");
  app.add_option_function<std::string>(
         "--format",
         [&to](const std::string& given) {
           for (const Format format : {Format::npy, Format::png, Format::tiff})
             if (given == (format == Format::npy ? "npy" : format == Format::png ? "png" : "tiff")) to.format = format;
           if (!to.format) throw UsageError("--format is '" + given + "'; legal are npy, png, tiff");
         },
         "npy, png or tiff. Default: what the name ends in")
      ->type_name("WORD")
      ->group("Files");
  add_dtype(app, to.dtype, "as in u8 or f32. Type of the result, rounded and clamped");
  add_windows(app, to.windows);
  add_operator_options(app, to.op);
  add_memory(app, to.run.memory, "at most (256M). Memory, pages of mapped files included");
  add_run(app, to.run);
  flag(app, "-q,--quiet", to.run.quiet, "no progress bar")->group("Running");
  flag(app, "-v,--verbose", to.run.verbose, "say what it did. And how long it took")->group("Running");
  app.footer(
      "  cenote pool max photo.png -o small.png -k 2\n"
      "  cenote pool average volume.npy -o half.npy -k 2x2x2 --memory 1G\n"
      "  cenote pool smooth-max x.npy -o - --beta 5 --adaptive 7x7 | cenote pool ...");
}

void add_grad(CLI::App& app, GradArguments& to) {
  add_operator(app, to.op);
  text(app, "INPUT", to.input, "", "where the derivative is taken: NPY; - is standard input")->required();
  text(app, "--jvp", to.jvp, "FILE", "a tangent dx. The result is J dx")->group("Files");
  text(app, "--vjp", to.vjp, "FILE", "a gradient gy. The result is J^T gy")->group("Files");
  text(app, "-o,--output", to.output, "FILE", "where the derivative goes; - is the standard output")->group("Files");
  text(app, "--value", to.value, "FILE", "the value as well")->group("Files");
  text(app, "--winners", to.winners, "FILE", "of max and min. The winner's place in its window, all bits set: none")
      ->group("Files");
  flag(app, "--flat", to.flat_winners, "flat winners. Indices into the pooled axes, -1: none")->group("Files");
  add_dtype(app, to.dtype, "bf16 in raw pairs. Files of raw pairs of bytes hold bfloat16");
  add_windows(app, to.windows);
  add_operator_options(app, to.op);
  add_memory(app, to.memory, "default: no limit. Arrays are cut along axes that are not pooled, so that a slice fits");
  add_run(app, to.run);
  app.footer(
      "  cenote grad max x.npy --vjp gy.npy -o gx.npy -k 3x3 -s 2 -p 1\n"
      "  cenote grad max x.npy --winners w.npy -k 2x2");
}

void add_explain(CLI::App& app, ExplainArguments& to) {
  add_operator(app, to.op);
  text(app, "INPUT", to.input, "", "a small NPY, PNG or TIFF, whose numbers are shown");
  text(app, "--shape", to.shape, "SIZE", "as in 8x8. The sizes of an input that is not there")->group("Picture");
  text(app, "--at", to.at, "INDEX", "as in 0x1. The output to look at; by default the middle")->group("Picture");
  text(app, "--svg", to.svg, "FILE", "draw into it. Instead of on the terminal")->group("Picture");
  text(app, "--colour,--color", to.colour, "WORD", "auto, always, never")->group("Picture");
  add_windows(app, to.windows);
  add_operator_options(app, to.op);
  app.footer(
      "  cenote explain max --shape 7x7 -k 3x3 -s 2 -p 1 --at 0x0\n"
      "  cenote explain smooth-max x.npy -k 3x3 --beta 2 --svg window.svg");
}

void add_check(CLI::App& app, CheckArguments& to) {
  value(app, "--seconds", to.seconds, "S", "how long (default 10)")->group("Running");
  value(app, "--seed", to.seed, "N", "which cases (default: others every time)")->group("Running");
  flag(app, "-q,--quiet", to.quiet, "only differences, and the exit code")->group("Running");
  app.footer("  cenote check --seconds 60");
}

void add_bench(CLI::App& app, BenchArguments& to) {
  text(app, "--verb", to.verb, "NAME", "forward, jvp or vjp (default forward)")->group("Results");
  text(app, "--svg", to.svg, "FILE", "draw the roofline into this file as well")->group("Results");
  flag(app, "--json", to.json, "numbers for programs instead of a table")->group("Results");
  add_run(app, to.run);
  flag(app, "--quick", to.quick, "small arrays, once: to see that it works")->group("Running");
  app.footer("  cenote bench --svg roofline.svg\n  cenote bench --verb vjp --json --threads 1");
}

void add_tour(CLI::App& app, TourArguments& to) {
  text(app, "PICTURE", to.picture, "", "a PNG or TIFF")->required();
  text(app, "-o,--output", to.output, "FILE", "where the contact sheet goes (default cenote-tour.png)")->group("Files");
  app.footer("  cenote tour photo.png -o sheet.png");
}

}  // namespace

std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string name = option.get_name(false, false);
  if (option.get_positional() && name == "OP") return {operator_names.begin(), operator_names.end()};
  static const std::map<std::string, std::vector<std::string>> words{
      {"ties", {"first", "all", "split"}},
      {"divisor", {"padded", "real"}},
      {"pads", {"zeros", "ignore"}},
      {"padding", {"same", "same-lower", "valid"}},
      {"format", {"npy", "png", "tiff"}},
      {"colour", {"auto", "always", "never"}},
      {"dtype", {element_names.begin(), element_names.end()}},
  };
  if (option.get_lnames().empty()) return {};
  const auto found = words.find(option.get_lnames().front());
  return found == words.end() ? std::vector<std::string>{} : found->second;
}

CommandLine::CommandLine() : app("Pooling of arrays and pictures, with every derivative.", "cenote") {
  app.formatter_fn([](const CLI::App* shown, const std::string&, CLI::AppFormatMode) { return help_page(*shown); });
  app.set_help_flag("-h,--help", "this page");
  app.set_version_flag("--version", "cenote " CENOTE_VERSION)->description("the version");
  app.require_subcommand(1);
  add_pool(*app.add_subcommand("pool", "Pool a file: arrays (NPY) and pictures (PNG, TIFF)"), pool);
  add_grad(*app.add_subcommand("grad", "Derivatives of pooling, and winners, of NPY files"), grad);
  add_explain(*app.add_subcommand("explain", "Draw one window: its taps, winner and gradient"), explain);
  add_check(*app.add_subcommand("check", "Compare the kernels with the definition, here and now"), check);
  add_bench(*app.add_subcommand("bench", "The roofline of this machine, and the operators under it"), bench);
  add_tour(*app.add_subcommand("tour", "Pool a picture in three ways and check the laws on it"), tour);
  CLI::App& completions = *app.add_subcommand("completions", "Print completions for a shell, or the manual page");
  text(completions, "SHELL", shell, "", "bash, zsh, fish or man")->required();
  completions.footer("  cenote completions bash > ~/.local/share/bash-completion/completions/cenote");
  app.footer(
      "  cenote pool max photo.png -o small.png --kernel 2\n"
      "  cenote explain average --shape 8x8 --kernel 3x3 --stride 2 --padding 1\n"
      "  cenote COMMAND --help shows the options of a command");
}

int CommandLine::run() const {
  if (app.got_subcommand("pool")) return cli::pool(pool);
  if (app.got_subcommand("grad")) return cli::grad(grad);
  if (app.got_subcommand("explain")) return cli::explain(explain);
  if (app.got_subcommand("check")) return cli::check(check);
  if (app.got_subcommand("bench")) return cli::bench(bench);
  if (app.got_subcommand("tour")) return cli::tour(tour);
  const std::string out = shell == "man" ? manual_page(app) : completion_script(app, shell);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace cenote::cli
