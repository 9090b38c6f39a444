"""corpus.py - rows of the attack corpus: a test each, judged beside the canaries of the host."""
import os

import lib

RESULTS = []  # (id, result, title, note)
CANARY = []   # the one, made in the cell

NOT_APPLICABLE = {
    "API-04": "fuzzed: tests/fuzz/fuzz_http_request.c, fuzz_api_server.c",
    "API-19": "tests/net/approvals.py: an answer is for one question, once or until its end, and never comes late",
    "FSX-09": "tests/ws/attack.py, tests/ws/apply.py",
    "FSX-13": "a path of the host has one field and one opener: tests/unit/test_launcher_opener.c",
    "FSX-17": "tests/ws/attack.py",
    "LOG-03": "tests/api/ledger.py",
    "LOG-04": "tests/api/ledger.py",
    "LOG-06": "no console yet",
    "REL-*": "tests/api/crash.py, tests/soak/daemon, tests/unit/test_store_crash.c",
}


def row(number, title, own=False):
    """A function that may return a note for the table."""
    def add(function):
        def run(api):
            if not CANARY:
                CANARY.append(lib.Canary())
            result, note = "WRONG", None
            try:
                CANARY[0].touched()
                note = function(api)
                touched = CANARY[0].touched()
                lib.check(not touched, f"the host was touched, OPEN: {touched}")
                result = "stopped"
            except lib.Failed as failed:
                if "OPEN" in str(failed):
                    result = "OPEN"
                raise
            finally:
                RESULTS.append((number, result, title, note))
        lib.TESTS.append((f"{number} {title}", run, own))
        return function
    return add


def print_table(elsewhere=NOT_APPLICABLE):
    """After the results; the outside puts it behind the plan."""
    if not RESULTS:
        return
    print("| ")
    print(f"| {'id':8}{'daemon':10}what is tried")
    for number, result, title, note in sorted(RESULTS):
        print(f"| {number:8}{result:10}{title}")
        if note:
            print(f"|                   {note}")
    for number, reason in elsewhere.items():
        print(f"| {number:8}n/a: {reason}")
    print("| stopped: the answers are as they must be, and no watched file of the host was touched.")


def as_user(function):
    """What it returns in a process of an ordinary user; exceptions are their names."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(lib.USER_ID, lib.USER_ID, lib.USER_ID)
            os.setresuid(lib.USER_ID, lib.USER_ID, lib.USER_ID)
            text = str(function())
        except BaseException as e:  # pylint: disable=broad-except  # the parent judges
            text = type(e).__name__
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return text
