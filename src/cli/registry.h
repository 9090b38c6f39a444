/*
 * registry.h - the hosts that the package clients of this host are configured to use: what the
 * presets `pip`, `npm`, `cargo`, `go` and `apt` stand for.
 *
 * They are read with the caller's rights from the client's own configuration, of the user and of
 * the host; where that says nothing, the client itself is asked for its default. Nothing is taken
 * from a project: clients are asked in the folder "/", and a program that lies below the working
 * folder is not run. No host is written down here.
 */
#pragma once

#include "spec/spec.h"

/* Adds the hosts, "mirror.example.org" or "mirror.example.org:8443", each once. */
int registry_hosts(const char *preset, struct arena *a, struct text_list *out,
                   struct err *e) MUST_USE;

/* "preset:..." in the rules becomes these hosts. Sets are the operator's, and stay. */
int registry_expand(struct spec *s, struct err *e) MUST_USE;
