"""Stand-ins for the Windows modules, so that a role's logic runs where no Windows is.

Every module writes down its arguments and returns what the test says. This rehearses
conditions, loops and templates of the roles; what the real modules do is not shown by it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from vega_image.ansible import Play, Played, run_playbook
from vega_image.checks.module_options import modules_of
from vega_image.digest import Json

# WANT_JSON: Ansible hands such a module its arguments as a file.
MODULE = '''#!/usr/bin/python3
"""WANT_JSON"""
import json, os, pathlib, sys
given = json.loads(pathlib.Path(sys.argv[1]).read_text())
name = given["_ansible_module_name"].rpartition(".")[2]
given = {key: value for key, value in given.items() if not key.startswith("_ansible_")}
folder = pathlib.Path(os.environ["VEGA_FAKE_WINDOWS"])
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps([name, given]) + "\\n")
answers = json.loads((folder / "answers.json").read_text())
said = json.dumps(given)
for entry in answers:
    if entry["module"] == name and all(word in said for word in entry["words"]):
        say = entry["say"].pop(0) if len(entry["say"]) > 1 else entry["say"][0]
        (folder / "answers.json").write_text(json.dumps(answers))
        break
else:
    say = {"changed": False}
print(json.dumps(say))
'''


class FakeWindows:
    """One workstation: `say` decides answers, `calls` are what it was asked."""

    def __init__(self, project: Path, folder: Path) -> None:
        self.folder = folder
        self.playbooks = Path(shutil.copytree(project / "playbooks", folder / "playbooks"))
        for name in modules_of(project):
            collection, _, module = name.rpartition(".")
            if collection != "ansible.builtin":
                place = "collections/ansible_collections" / Path(*collection.split("."))
                path = self.playbooks / place / "plugins/modules" / f"{module}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(MODULE)
        self.answers: list[dict[str, Json]] = []

    def say(self, module: str, *answers: Mapping[str, Json], words: Sequence[str] = ()) -> None:
        """Answer a module whose arguments have all words; the last answer stays."""
        self.answers.insert(0, {"module": module, "words": list(words), "say": list(answers)})

    def play(
        self, role: str, values: Mapping[str, Json] | None = None, *, check: bool = False
    ) -> Played:
        """Run one role of windows.yaml."""
        (self.folder / "answers.json").write_text(json.dumps(self.answers))
        (self.folder / "calls").write_text("")
        host = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "/usr/bin/python3",
            "vega_native_build": True,
        }
        inventory = self.folder / "office.yaml"
        inventory.write_text(yaml.safe_dump({"windows": {"hosts": {"pc.example": host}}}))
        play = Play(
            folder=self.playbooks,
            playbook="windows.yaml",
            inventory=inventory,
            tags=[role],
            values=values or {},
            check=check,
        )
        return run_playbook(play, scratch=self.folder)

    @property
    def calls(self) -> list[tuple[str, dict[str, Json]]]:
        """What modules were called with, in order."""
        lines = (self.folder / "calls").read_text().splitlines()
        return [(name, given) for name, given in map(json.loads, lines)]

    def called(self, module: str) -> list[dict[str, Json]]:
        """The arguments of each call of one module."""
        return [given for name, given in self.calls if name == module]
