/*
 * doctor_setup.c - what `caisson doctor` says of this installation: programs, the daemon's socket,
 * room for its state. The errors that people meet first have the same advice (base/advice.h).
 */
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/fd.h"
#include "cli/address.h"
#include "cli/doctor.h"
#include "io/program.h"

#define ROOM_BYTES_MIN (256ull << 20) /* some runs, their logs and the ledger */

static const char *const programs[] = { "caissond",       "caisson-launcher", "caisson-cache",
	                                "caisson-gate",   "caisson-hook",     "caisson-init",
	                                "caisson-ledger", "caisson-tree",     "caisson-vault" };

static void add(struct doctor_report *r, struct doctor_row row, enum advice fix)
{
	row.area = DOCTOR_SETUP;
	if (row.detail)
		row.fix = advice(fix);
	if (r->n_rows < DOCTOR_ROWS_MAX)
		r->rows[r->n_rows++] = row;
}

static void add_programs(struct doctor_report *r)
{
	struct doctor_row row = { .name = "programs", .by = "all" };
	char path[PATH_TEXT_MAX];
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(programs) && !row.detail; i++)
		if (program_find(programs[i], path, &e) < 0)
			row = (struct doctor_row){ .name = row.name,
				                   .state = DOCTOR_MISSING,
				                   .by = programs[i],
				                   .detail = arena_strdup(&r->arena, e.msg) };
	add(r, row, ADVICE_PROGRAMS);
}

static void add_socket(struct doctor_report *r, const struct address *a)
{
	struct doctor_row row = { .name = "daemon" };
	struct err e = { 0 };
	AUTO(fd_close) int fd = address_connect(a, &e);
	bool is_denied = e.sys == EACCES || e.sys == EPERM;

	row.by = arena_strdup(&r->arena, a->is_tcp ? a->host : a->path);
	if (fd < 0 && !a->is_named && !is_denied) {
		row.by = "started when it is needed";
	} else if (fd < 0) {
		row.state = DOCTOR_MISSING;
		row.detail = arena_strdup(&r->arena, strerror(e.sys));
	}
	add(r, row,
	    is_denied   ? ADVICE_SOCKET_DENIED
	    : a->is_tcp ? ADVICE_NO_SERVER
	                : ADVICE_NO_DAEMON);
}

/* Of the folder, or of what it will be made in. */
static void add_room(struct doctor_report *r, const struct address *a)
{
	struct doctor_row row = { .name = "state folder", .by = NULL };
	char path[PATH_TEXT_MAX];
	struct statvfs v;

	snprintf(path, sizeof path, "%s", a->state_dir);
	while (statvfs(path, &v) < 0) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return;
		*slash = '\0';
	}
	row.by = arena_strdup(&r->arena, a->state_dir);
	if ((uint64_t)v.f_bavail * v.f_frsize < ROOM_BYTES_MIN) {
		row.state = DOCTOR_WEAK;
		row.detail = "less than 256 MiB are left on its disk";
	}
	add(r, row, ADVICE_DISK_FULL);
}

void doctor_setup(struct doctor_report *r)
{
	struct address a;
	struct err e = { 0 };

	add_programs(r);
	if (address_find(&a, &e) < 0)
		return;
	add_socket(r, &a);
	if (!a.is_named)
		add_room(r, &a);
}
