"""Rows that take more than one run of the probe, found by name in the modules of their subject."""

import configs
import limits
import looks

FUNCTIONS = {name: f for module in (looks, limits, configs) for name, f in vars(module).items() if callable(f)}
