#!/usr/bin/env python3
"""A complete write-test-fix loop: the agent works in a workspace by its six tools until the tests pass.

A script plays the model, so that no key is needed. It sees what a model would see, the texts that the tools return,
and answers with tool calls in the shape of a model's answer. Put a real one in its place and nothing else changes:
send `tools.specs("anthropic")` (or "openai") along, and hand its calls to `tools.call`.
"""
import re

from caisson import Workspace

SOURCE = '''\
def slug(title):
    """Lower case, words joined by one dash, nothing else."""
    return title.replace(" ", "-")


def unique(title, taken):
    """The slug, with a number behind it when it is taken."""
    name = slug(title)
    if name in taken:
        name = name + "-2"
    return name
'''
TESTS = '''\
import unittest
from slugs import slug, unique


class Slugs(unittest.TestCase):
    def test_case(self):
        self.assertEqual(slug("Hello World"), "hello-world")

    def test_signs(self):
        self.assertEqual(slug("  What's new? "), "what-s-new")

    def test_taken(self):
        self.assertEqual(unique("a", {"a", "a-2"}), "a-3")


unittest.main()
'''


class ScriptedModel:
    """Decides by what it reads. `think` gets the answer to its last call and returns the next one, or None."""

    EDITS = [
        (r"hello-world", 'return title.replace(" ", "-")', 'return title.lower().replace(" ", "-")'),
        (r"what-s-new", 'return title.lower().replace(" ", "-")',
         'return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")'),
        (r"NameError: name 're'", "def slug(title):", "import re\n\n\ndef slug(title):"),
        (r"'a-2' != 'a-3'", '    if name in taken:\n        name = name + "-2"\n    return name',
         "    numbers = iter(range(2, len(taken) + 3))\n    found = name\n    while found in taken:\n"
         '        found = f"{name}-{next(numbers)}"\n    return found'),
    ]

    def __init__(self):
        self.left = list(self.EDITS)
        self.has_read = False

    def think(self, said):
        if said is None or said.startswith("---"):  # at the beginning, and after an edit
            return "bash", {"command": "python3 test_slugs.py"}
        if re.search(r"^OK$", said, re.M):
            return None
        if not self.has_read:
            self.has_read = True
            return "read", {"file_path": "slugs.py"}
        if "def slug" in said:  # what it has read
            return "bash", {"command": "python3 test_slugs.py"}
        for edit in self.left:
            if re.search(edit[0], said):
                self.left.remove(edit)
                return "edit", {"file_path": "slugs.py", "old_string": edit[1], "new_string": edit[2]}
        raise RuntimeError(f"no idea what to do about: {said}")


def main():
    ws = Workspace.open("example-fix-tests")
    try:
        ws.write("slugs.py", SOURCE)
        ws.write("test_slugs.py", TESTS)
        tools, model, said = ws.tools(), ScriptedModel(), None
        for turn in range(1, 21):
            call = model.think(said)
            if call is None:
                break
            said = tools.call(*call)
            print(f"{turn:2} {call[0]:5} {list(call[1].values())[0]!r}: {said.strip().splitlines()[-1]}")
        result = ws.exec("python3 test_slugs.py")
        print(ws.diff(base="base", path="slugs.py"))
        print("passes:", result.ok)
        return 0 if result.ok else 1
    finally:
        ws.remove(force=True)


if __name__ == "__main__":
    raise SystemExit(main())
