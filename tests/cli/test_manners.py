"""Help, version, completions, the manual page, and the commands that report on this machine."""
import json
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

from support import CENOTE, Scratch, run

COMPLETED = {  # lines, and what the last word of each becomes
    "cenote ex": "explain",
    "cenote pool smo": "smooth-max",
    "cenote pool max --ker": "--kernel",
    "cenote pool max --ties sp": "split",
}
COMMANDS = ["pool", "grad", "explain", "check", "bench", "tour", "completions"]


class Manners(Scratch):
    def options_of(self, command):
        return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", self.cenote(command, "--help").decode().split("Examples:")[0]))

    def test_help_fits_a_screen_and_has_examples(self):
        for command in ([], *([name] for name in COMMANDS)):
            text = self.cenote(*command, "--help").decode()
            self.assertLessEqual(len(text.splitlines()), 24, command)
            self.assertLessEqual(max(map(len, text.splitlines())), 80, command)
            self.assertIn("Examples:\n  cenote", text)

    def test_version(self):
        self.assertRegex(self.cenote("--version"), rb"^cenote \d+\.\d+\.\d+\n$")

    def test_no_command_and_no_such_command(self):
        self.refused(2)
        self.assertIn("dive", self.refused(2, "dive"))
        self.assertIn("--help", self.refused(2, "pool"))
        self.assertIn("'--deep'; legal are pool", self.refused(2, "--deep"))
        self.assertIn("'--deep' is nothing that cenote check takes", self.refused(2, "check", "--deep"))

    def test_completions_and_the_manual_page_know_every_option(self):
        for shell in ("bash", "zsh", "fish", "man"):
            script = self.cenote("completions", shell).decode().replace("\\-", "-")
            for command in COMMANDS:
                self.assertIn(command, script)
                for option in self.options_of(command):
                    name = f"-l {option[2:]}" if shell == "fish" else option
                    self.assertIn(name, script, f"{shell}, {command}")
        self.assertIn("'csh'", self.refused(2, "completions", "csh"))

    def test_bash_completes_commands_operators_options_and_words(self):
        self.path("c").write_bytes(self.cenote("completions", "bash"))
        for line, expected in COMPLETED.items():
            words = line.split()
            code = f"source {self.path('c')}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _cenote; echo ${{COMPREPLY[@]}}"
            self.assertEqual(subprocess.run(["bash", "-c", code], capture_output=True, text=True).stdout.strip(), expected)

    def test_fish_completes_the_same(self):
        self.path("c").write_bytes(self.cenote("completions", "fish"))
        for line, expected in COMPLETED.items():
            code = f"source {self.path('c')}; complete -C '{line}'"
            out = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True)
            self.assertEqual((out.stdout.split("\t")[0].strip(), out.stderr), (expected, ""), line)

    def test_zsh_completes_the_same(self):
        self.path("_cenote").write_bytes(self.cenote("completions", "zsh"))
        for line, expected in COMPLETED.items():
            # A shell with a terminal: the line, a tab, and the words that stand there then.
            self.path("ask").write_text(f"""
                zmodload zsh/zpty
                zpty shell zsh -f -i
                zpty -w shell "PS1=; fpath=({self.path('')} \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word"
                zpty -w -n shell $'{line}\t\x01print -r -- "<" \x05 ">"\n'
                zpty -r -m shell seen '*< cenote*>*' && print -r -- $seen
            """)
            out = subprocess.run(["zsh", "-f", self.path("ask")], capture_output=True, text=True, timeout=60)
            words = re.findall(r"< (cenote.*?) +>", out.stdout)
            self.assertEqual(words[-1:], [" ".join([*line.split()[:-1], expected])], out.stdout + out.stderr)


class Reports(Scratch):
    def test_what_cannot_be_printed_is_an_error(self):
        for arguments in (["--help"], ["--version"], ["completions", "man"], ["explain", "max", "--shape", "3x3", "-k", "2x2"],
                          ["check", "--seconds", "0.01"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([CENOTE, *arguments], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1), arguments)
            self.assertIn(b"standard output: cannot be written", done.stderr)

    def test_check_compares_and_counts(self):
        out = self.cenote("check", "--seconds", "1", "--seed", "7").decode()
        cases = re.search(r"^(\d+) cases, each on \d+ instruction sets: 0 differences$", out, re.MULTILINE)
        self.assertGreater(int(cases[1]), 0)
        self.assertEqual(self.cenote("check", "--seconds", "0.1", "--quiet"), b"")
        self.assertIn("--seconds", self.refused(2, "check", "--seconds", "0"))

    def test_bench_gives_a_table_numbers_and_a_chart(self):
        out = self.cenote("bench", "--json", "--quick", "--svg", self.path("roof.svg"))
        numbers = json.loads(out)
        self.assertGreater(numbers["memcpy_bytes_per_second"], 0)
        self.assertEqual(len({(r["operator"], r["windows"]) for r in numbers["results"]}), 24)
        self.assertTrue(all(r["seconds"] > 0 for r in numbers["results"]))
        xml.etree.ElementTree.parse(self.path("roof.svg"))
        self.assertIn(b"smooth-max", self.cenote("bench", "--quick"))

    def test_bench_measures_derivatives_too(self):
        for verb in ("jvp", "vjp"):
            numbers = json.loads(self.cenote("bench", "--json", "--quick", "--verb", verb))
            self.assertEqual(numbers["verb"], verb)
            by = {(r["operator"], r["windows"]): r for r in numbers["results"]}
            # A maximum looks at the input again, an average need not.
            self.assertGreater(by["max", "2x2"]["bytes"], by["average", "2x2"]["bytes"])
        self.assertIn("--verb", self.refused(2, "bench", "--verb", "backward"))


if __name__ == "__main__":
    unittest.main()
