"""The types say what is there, and what is there has types."""

import ast
import inspect
import pathlib
import subprocess
import sys
import unittest

import skyhaul
from skyhaul import _skyhaul

PACKAGE = pathlib.Path(skyhaul.__file__).parent


class Stubs(unittest.TestCase):
    def test_the_stub_has_every_name_and_no_other(self) -> None:
        module = ast.parse((PACKAGE / "_skyhaul.pyi").read_text())
        said: dict[str, set[str]] = {}
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                said[node.name] = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            elif isinstance(node, ast.FunctionDef):
                said[node.name] = set()
        found = {name: value for name, value in vars(_skyhaul).items() if not name.startswith("_")}
        self.assertEqual(set(said), set(found))
        for name, value in found.items():
            if inspect.isclass(value):
                names = {one for one in vars(value) if not one.startswith("_")}
                self.assertEqual({one for one in said[name] if not one.startswith("_")}, names, name)

    def test_every_public_name_is_exported_and_says_what_it_is(self) -> None:
        for name in skyhaul.__all__:
            self.assertTrue(hasattr(skyhaul, name), name)
            if name != "__version__":
                self.assertTrue(inspect.getdoc(getattr(skyhaul, name)), name)

    def test_a_type_checker_finds_nothing(self) -> None:
        here = pathlib.Path(__file__).parent
        options = ["--strict", "--cache-dir", str(pathlib.Path(sys.prefix) / "mypy")]
        for what in (["-p", "skyhaul"], [str(here / "typed.py")]):
            command = [sys.executable, "-m", "mypy", *options, *what]
            checked = subprocess.run(command, capture_output=True, text=True, cwd=sys.prefix)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
