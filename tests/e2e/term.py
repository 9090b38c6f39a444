"""term.py STEP... -- COMMAND... - plays a person at a terminal of 30 rows and 100 columns.

    expect TEXT     waits until the command has written it; what came before is dropped
    type TEXT       \\r \\n \\x03 ... as in Python
    size ROWS COLS  of the window
    mode raw|cooked of the terminal, waited for
    signal NAME     to the command
    stopped         the command stops; `signal CONT` goes on
    sleep SECONDS
    hangup          the window is closed

The last line says `exit N` (128+n for a signal), then `restored` when the terminal is as it was.
Exits with 1 when a step did not come true, and says which.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

PATIENCE_S = 60


class Terminal:
    def __init__(self, command):
        self.master, self.slave = pty.openpty()
        self.size(30, 100)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.master)
            os.login_tty(self.slave)
            os.execvp(command[0], command)

    def read(self, seconds):
        ready, _, _ = select.select([self.master] if self.master >= 0 else [], [], [], seconds)
        if ready:
            self.seen += os.read(self.master, 65536)
        return bool(ready)

    def wait_for(self, is_true, seconds=PATIENCE_S):
        """Reads meanwhile: a terminal that nobody reads stands still."""
        end = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > end:
                return False
            self.read(0.02)
        return True

    def has_ended(self, options=os.WNOHANG):
        if self.status is None:
            pid, status = os.waitpid(self.pid, options)
            self.status = status if pid else None
        return self.status is not None

    # ---- the steps; each returns False when it did not come true ----

    def expect(self, text):
        wanted = text.encode()
        if not self.wait_for(lambda: wanted in self.seen or (self.has_ended() and not self.read(1))):
            return False
        _, found, self.seen = self.seen.partition(wanted)
        return bool(found)

    def type(self, text):
        os.write(self.master, text.encode("latin-1").decode("unicode_escape").encode("latin-1"))

    def size(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", int(rows), int(cols), 0, 0))

    def mode(self, name):
        def is_raw():
            return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
        return self.wait_for(lambda: is_raw() == (name == "raw"))

    def signal(self, name):
        os.kill(self.pid, signal.Signals["SIG" + name])

    def stopped(self):
        def is_stopped():
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            return pid != 0 and os.WIFSTOPPED(status)
        return self.wait_for(is_stopped)

    def sleep(self, seconds):
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            self.read(0.02)

    def hangup(self):
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1

    def finish(self, seconds):
        if not self.wait_for(self.has_ended, seconds):
            os.kill(self.pid, signal.SIGKILL)
            self.has_ended(0)
            return "it did not end"
        code = os.waitstatus_to_exitcode(self.status)
        words = [f"exit {code if code >= 0 else 128 - code}"]
        if self.slave >= 0 and termios.tcgetattr(self.slave) == self.before:
            words.append("restored")
        return " ".join(words)


def main():
    split = sys.argv.index("--")
    terminal = Terminal(sys.argv[split + 1:])
    failed = None
    for step in sys.argv[1:split]:
        word, _, rest = step.partition(" ")
        words = [rest] if word in ("expect", "type") else rest.split()
        if getattr(terminal, word)(*words) is False:
            failed = f"{step}: did not come true; seen: {terminal.seen!r}"
            break
    end = terminal.finish(0 if failed else PATIENCE_S)
    print(failed or end)
    return 1 if failed else 0


sys.exit(main())
