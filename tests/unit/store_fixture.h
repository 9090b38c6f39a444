/*
 * store_fixture.h - a state folder for one test, and answers that can be waited for.
 */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "store/store.h"
#include "test.h"

static char dir[64];

/* In memory: a sync of a disk that others are busy with takes as long as it likes, and nothing here
 * is about that. */
static inline void dir_make(void)
{
	bool has_memory = access("/dev/shm", W_OK | X_OK) == 0;

	snprintf(dir, sizeof dir, "%s/test-store-XXXXXX", has_memory ? "/dev/shm" : "/tmp");
	CHECK(mkdtemp(dir));
}

static inline const char *file_in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static inline void dir_remove(void)
{
	static const char *const files[] = { "caisson.db", "caisson.db-wal", "caisson.db-shm",
		                             "caisson.lock" };

	for (size_t i = 0; i < COUNT(files); i++)
		unlink(file_in_dir(files[i]));
	CHECK_INT(rmdir(dir), 0);
}

static inline struct store *must_open(void)
{
	struct err e = { 0 };
	struct store *s = store_open(dir, &e);

	CHECK_STR(e.msg, "");
	CHECK(s);
	return s;
}

/* Opening is refused, with a sentence that contains `part`. */
static inline void must_refuse(const char *part)
{
	struct err e = { 0 };
	struct store *s = store_open(dir, &e);

	CHECK(!s);
	if (!strstr(e.msg, part))
		CHECK_STR(e.msg, part);
}

/* The last answer that hear() got. */
static struct {
	int n;
	enum store_code code;
	enum err_kind kind;
	int64_t rows;
	char msg[504];
} heard;

static inline void hear(void *arg, const struct store_answer *a)
{
	(void)arg;
	heard.n++;
	heard.code = a->code;
	heard.rows = a->rows;
	heard.kind = a->err ? a->err->kind : ERR_NONE;
	snprintf(heard.msg, sizeof heard.msg, "%s", a->err ? a->err->msg : "");
	CHECK((a->code == STORE_OK) == !a->err);
}

#define HEAR ((struct store_call){ .done = hear })

/* Dispatches until every request is answered. */
static inline void settle(struct store *s)
{
	while (store_waiting(s)) {
		struct pollfd ready = { .fd = store_fd(s), .events = POLLIN };

		CHECK_INT(poll(&ready, 1, TEST_WAIT_MS), 1);
		store_dispatch(s);
	}
}

/* Waits for one write and checks its answer. */
static inline void answered(struct store *s, int queued, const struct err *e, enum store_code code)
{
	if (queued < 0)
		CHECK_STR(e->msg, "");
	settle(s);
	if (heard.code != code)
		printf("# %s\n", heard.msg);
	CHECK_INT(heard.code, code);
}

/* MUST(STORE_OK, store_x_put(s, &row, HEAR, &e)); needs `s` and `e`. */
#define MUST(code, call) answered(s, call, &e, code)
/* The call itself is refused, with a sentence that contains `part`; needs `e`. */
#define REFUSED(call, part)                                                                        \
	do {                                                                                       \
		e = (struct err){ 0 };                                                             \
		CHECK_INT(call, -1);                                                               \
		if (!strstr(e.msg, part))                                                          \
			CHECK_STR(e.msg, part);                                                    \
	} while (0)
