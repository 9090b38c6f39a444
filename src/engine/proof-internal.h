/*
 * proof-internal.h - shared by proof.c, proof_tree.c and their unit test.
 */
#pragma once

#include "engine/proof.h"

enum proof_when {
	PROOF_ALWAYS,
	PROOF_WITHOUT_NET,
	PROOF_WITH_NET,
};

struct proof_check {
	enum wall wall;
	enum proof_when when;
	/* 0 when the wall stands. Else *e has what is wrong, without the name of the wall. */
	int (*look)(const struct proof_at *at, struct err *e);
};

extern const struct proof_check proof_checks[];
extern const size_t proof_n_checks;

int proof_namespaces(const struct proof_host *host, uint32_t *proved, struct err *e) MUST_USE;
int proof_root(const struct proof_host *host, struct err *e) MUST_USE;
