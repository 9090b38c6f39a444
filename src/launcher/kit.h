/*
 * kit.h - what a launcher that makes many sandboxes finds out once.
 *
 * While a kit is open it shares the gate (launcher/slot.h): nobody removes the skeleton or caisson/
 * of the cgroups. Files of the host that the skeleton was copied from may change: that is looked at
 * again, but not for every sandbox.
 */
#pragma once

#include "launcher/launcher.h"

struct kit {
	bool is_open;
	struct launcher_kit common;
	struct launcher_host host;
	int gate_fd;
	uint64_t checked_ms;
};

int kit_open(struct kit *k, struct err *e) MUST_USE;
int kit_refresh(struct kit *k, uint64_t now_ms, struct err *e) MUST_USE; /* before each use */
void kit_done(struct kit *k);
