"""The client, written once with `await`; `generate` makes caisson/_s, which blocks, from it."""
