/*
 * enforced.h - rule 3 for the API: what was named and has no mechanism here is refused, and every
 * answer says what enforces each field.
 */
#pragma once

#include "core/core.h"
#include "engine/enforce.h"

/* The caller's to free: a JSON object, {"net":"netns", ...}; and lines for people about the
 * defaults that nothing enforces here, "caisson: not enforced here: cpu, mem (no cgroup
 * delegation)". */
struct enforced_texts {
	char *by, *note;
};
void enforced_print(const struct spec *s, const struct enforce_host *host,
                    struct enforced_texts *out);
/* Walls that the proof of a launch has seen (engine/proof.h), and no more. */
void enforced_proved(const struct core *c, const struct spec *s, uint32_t walls,
                     struct enforced_texts *out);
/* Before the launch: what has to be proved before anything runs. */
int enforced_judge(const struct core *c, const struct spec *s, struct enforced_texts *out,
                   struct fail *f) MUST_USE;
/* Adds to an error of a launch what to type, if this host tells why; when the walls themselves did
 * not stand, at least who may know. */
void enforced_advise(const struct core *c, struct err *e, bool is_of_walls);
