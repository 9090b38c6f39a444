"""rows.py - rows of the attack corpus about workspaces: a control that must succeed, then Caisson, judged by the host.

A row is a function (api, arms). It calls arms.control() with what the same attempt does without us, arms.off() with
what it does when one of our layers is left out, and fails by lib.check. A text with OPEN in it means that it got through.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "api"))

import lib  # noqa: E402

RESULTS = []  # (id, Arms, title)
CANARY = []   # the one, made in the cell

# Rows that are proved elsewhere, or have nothing to be tried on; the table says so.
ELSEWHERE = {
    "ARC-01": "images: tests/ws/images.py; into a workspace: FSX-29",
    "ARC-02": "no zip is taken: tests/ws/images.py",
    "ARC-03": "tests/ws/images.py",
    "ARC-07": "tests/fuzz: fuzz_import.c, fuzz_oci.c, fuzz_tree_patch.c, fuzz_vault.c",
    "ARC-08": "tests/ws/images.py",
    "ARC-09": "tests/ws/images.py",
    "ARC-10": "tests/ws/images.py",
    "FSX-11": "tests/api/attack.py; mode read: also tests/ws/defects.py",
    "FSX-12": "tests/api/attack.py, tests/unit/test_launcher_opener.c",
    "FSX-14": "tests/api/attack.py: the same worker",
    "FSX-13": "a path of the host has one field and one opener: tests/unit/test_launcher_opener.c",
    "FSX-18": "tests/api/attack.py",
    "FSX-21": "tests/api/attack.py",
    "FSX-22": "tests/api/attack.py",
    "FSX-24": "tests/api/attack.py",
    "FSX-25": "tests/api/attack.py",
    "FSX-28": "tests/api/attack.py: the same worker",
    "SNP-04": "tests/ws/crash.py, tests/ws/matrix.py, tests/unit/test_vault_faults.c",
    "SNP-06": "n/a: no snapshot has memory in it",
    "SNP-09": "n/a: no snapshot is imported; of an image only files count: tests/ws/images.py",
}


class Arms:
    """What a row found, beside its verdict."""

    def __init__(self):
        self.result, self.controls, self.offs, self.notes = "WRONG", [], [], []

    def control(self, is_open, what=""):
        """Without us it must work, or the row proves nothing."""
        lib.check(is_open, f"control: {what or 'the attempt does not work without us'}")
        self.controls.append("open")

    def off(self, is_open, what):
        """With that layer left out."""
        self.offs.append(f"{what}={'open' if is_open else 'stopped'}")

    def note(self, text):
        self.notes.append(text)


def row(number, title, own=False):
    def add(function):
        def run(api):
            if not CANARY:
                CANARY.append(lib.Canary())
            arms = Arms()
            RESULTS.append((number, arms, title))
            try:
                CANARY[0].touched()
                function(api, arms)
                lib.check(arms.controls, "there is no control")
                touched = CANARY[0].touched()
                lib.check(not touched, f"the host was touched, OPEN: {touched}")
                arms.result = "stopped"
            except lib.Failed as failed:
                arms.result = "OPEN" if "OPEN" in str(failed) else "WRONG"
                raise
        lib.TESTS.append((f"{number} {title}", run, own))
        return function
    return add


def print_table(elsewhere=ELSEWHERE):
    print("| ")
    print(f"| {'id':8}{'control':10}{'caisson':10}what is tried; layer off")
    for number, arms, title in sorted(RESULTS, key=lambda r: r[0]):
        print(f"| {number:8}{'open' if arms.controls else '-':10}{arms.result:10}{title}{'; ' if arms.offs else ''}{' '.join(arms.offs)}")
        for note in arms.notes:
            print(f"|                             {note}")
    for number, where in sorted(elsewhere.items()):
        print(f"| {number:8}{where}")
    print("| open: without us the attempt works. stopped: the answers are as they must be, and no watched file of the host was touched.")
