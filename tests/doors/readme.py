#!/usr/bin/env python3
"""The README's first five minutes with npm, too: tests/sdk/readme.py, and its line for npm as it stands there. TAP."""
import os
import pathlib
import sys

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "sdk/readme.py"
os.execve(sys.executable, [sys.executable, str(SCRIPT)], {**os.environ, "CAISSON_NPM": "1"})
