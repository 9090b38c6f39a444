#!/usr/bin/env bash
# failure-modes.sh - docs/failure-modes.md, row by row, against a daemon.
exec python3 "$(dirname "$0")/failure_modes.py" "$@"
