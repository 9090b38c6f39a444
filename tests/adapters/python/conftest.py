"""Snippets of docs/adapters.md, run as they stand."""
import os
import pathlib
import re

import pytest


@pytest.fixture
def snippet():
    """The code below a heading, with these names known; returns all names that it leaves."""
    def run(heading, **known):
        text = pathlib.Path(os.environ["ADAPTERS_DOC"]).read_text(encoding="utf-8")
        code = re.search(rf"^## {heading}\n.*?^```python\n(.*?)^```", text, re.M | re.S)[1]
        exec(compile(code, heading, "exec"), known)
        return known
    return run
