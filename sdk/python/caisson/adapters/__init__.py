"""Caisson as the sandbox of agent frameworks: one file for each, loaded only by whoever imports it (docs/adapters.md)."""
