/*
 * hostcheck-internal.h - what the judges of a host share.
 */
#pragma once

#include "base/advice.h"
#include "engine/hostcheck.h"

struct judge {
	const struct hostfacts *f;
	struct arena *arena;
	struct hostcheck_row *rows;
	size_t n;
};

void judge_add(struct judge *j, struct hostcheck_row row);
void judge_find(struct hostcheck_row *row, enum host_state state, const char *why, const char *fix);
const char *judge_text(struct judge *j, const char *fmt, ...) PRINTF(2, 3);

/* A number below /proc/sys and what it shall be. */
struct host_setting {
	const char *name; /* as sysctl(8) has it */
	long long min, max, want;
	unsigned int since_minor; /* of Linux 6: before it there is no switch, and it is on */
	bool is_needed;           /* without it nothing starts */
	const char *why;
	enum advice absent; /* ADVICE_NONE: fine without; else what would add it */
};
extern const struct host_setting host_settings[];
extern const size_t host_n_settings;

/* True when a setting keeps namespaces from being made; its row then has the fix. */
bool settings_forbid_namespaces(const struct hostfacts *f);
void settings_judge(struct judge *j);

#define SETTING_FIX_MAX 96
/* The command that makes it right. */
void setting_fix(const struct host_setting *s, char out[SETTING_FIX_MAX]);
bool setting_is_bad(const struct host_setting *s, const struct host_value *v);

bool hostcheck_is_old(const struct hostfacts *f);
