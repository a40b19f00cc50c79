"""Every command of docs/cli.md runs, and what the page shows is what the tool prints."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import numpy as np

from support import CENOTE, HERE, Scratch

ROOT = HERE.parent.parent
PAGE = (ROOT / "docs" / "cli.md").read_text()


class Docs(Scratch):
    def test_every_command_runs(self):
        shutil.copy(ROOT / "examples" / "data" / "coffee.png", self.path("photo.png"))
        np.save(self.path("volume.npy"), self.random.normal(size=(16, 20, 24)).astype("f4"))
        np.save(self.path("x.npy"), self.random.normal(size=(6, 8)).astype("f4"))
        bin_folder = self.path("bin")
        bin_folder.mkdir()
        (bin_folder / "cenote").symlink_to(pathlib.Path(CENOTE).resolve())
        all_blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        blocks = [text for language, text in all_blocks if language == "sh"]
        self.assertGreaterEqual(len(blocks), 6)
        printed = ""
        for line in "".join(blocks).splitlines():
            line = line.replace("cenote check", "cenote check --seed 1")  # the same cases every time
            done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 0, f"{line}: {done.stderr.decode()}")
            printed += done.stdout.decode()
        for shown in (text for language, text in all_blocks if language == ""):
            self.assertIn(shown, printed)

    def test_every_command_of_the_page_is_one(self):
        listed = set(re.findall(r"^\| `cenote (\w+)` ", PAGE, re.MULTILINE))
        helped = set(re.findall(r"^  (\w+) {3,}[A-Z]", self.cenote("--help").decode(), re.MULTILINE))
        self.assertEqual(listed, helped - {"completions"})


class Tour(Scratch):
    def test_the_tour_ends_well_and_leaves_its_picture(self):
        import pictures
        out = self.cenote("tour", ROOT / "examples" / "data" / "coffee.png", "-o", self.path("sheet.png")).decode()
        self.assertNotIn(" NO", out)
        self.assertIn(str(self.path("sheet.png").resolve()), out)
        header = next(pictures.png_chunks(self.path("sheet.png").read_bytes()))[1]
        self.assertEqual(pictures.struct.unpack(">II", header[:8]), (804, 584))


if __name__ == "__main__":
    unittest.main()
