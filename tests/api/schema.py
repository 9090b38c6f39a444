"""schema.py - records of the ledger, held against the schema that we publish."""
import collections
import json
import pathlib
import re

import jsonschema
import lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = json.loads((ROOT / "docs/ledger.schema.json").read_text())
SCHEMA = jsonschema.Draft202012Validator(TEXT)
KINDS = set(re.findall(r'= \{ "([a-z]+\.[a-z]+)"', (ROOT / "src/wire/ledger.c").read_text()))


def valid(records):
    """Each is what it says: how many there were of each kind."""
    for r in records:
        wrong = next(SCHEMA.iter_errors(r), None)
        lib.check(not wrong, lambda: f"docs/ledger.schema.json: {wrong and wrong.message} in {r}")
    return collections.Counter(r["kind"] for r in records)


def complete():
    """It has every kind that there is, and says of each what its data are."""
    lib.same(set(TEXT["properties"]["kind"]["enum"]), KINDS, "kinds")
    lib.same({rule["if"]["properties"]["kind"]["const"] for rule in TEXT["allOf"]}, KINDS, "kinds with data")
