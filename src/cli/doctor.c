#include "cli/doctor.h"

#include <jansson.h>
#include <time.h>

#include "base/str.h"
#include "cli/pump.h"
#include "cli/remote.h"

enum { EXIT_UNENFORCEABLE = 1, EXIT_OURS = 125, LAUNCHES = 5, REPORT_BYTES_MAX = 1 << 20 };

static const char *const area_names[] = {
	[DOCTOR_WALLS] = "walls",       [DOCTOR_ROOT] = "root",   [DOCTOR_ROOTLESS] = "rootless",
	[DOCTOR_SETTINGS] = "settings", [DOCTOR_SETUP] = "setup",
};
_Static_assert(COUNT(area_names) == DOCTOR_AREAS, "an area has no name");

static const char *const state_names[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_WEAK] = "weak",
	[DOCTOR_MISSING] = "missing",
	[DOCTOR_UNKNOWN] = "unknown",
};
_Static_assert(COUNT(state_names) == DOCTOR_STATES, "a state has no name");

/* ---- one real launch, timed -------------------------------------------------------- */

struct timing {
	double ms[LAUNCHES]; /* in order of size */
	struct err e;        /* of the launch that failed; else ERR_NONE */
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int launch(const struct driver *driver, const struct spec *spec, struct err *e)
{
	char program[] = "/bin/true";
	char *argv[] = { program, NULL };
	struct run_setup setup = { .spec = spec, .argv = argv };
	struct run_session session = { .poll_fd = -1 };

	if (driver->start(&setup, &session, e) < 0)
		return -1;
	AUTO(pump_done)
	struct pump pump = { .driver = driver, .session = &session, .is_quiet = true };
	int r = pump_run(&pump, e);
	driver->end(&session);
	if (r == 0 && remote_exit_status(pump.process) != 0)
		return err_new(e, ERR_INTERNAL, "%s: %s", program,
		               json_string_value(json_object_get(pump.process, "state")));
	return r;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void time_launches(const struct driver *driver, struct timing *out)
{
	AUTO(spec_done) struct spec spec;

	*out = (struct timing){ 0 };
	spec_init(&spec);
	spec_resolve(&spec);
	for (size_t i = 0; i < LAUNCHES; i++) {
		double begin = now_ms();

		if (launch(driver, &spec, &out->e) < 0)
			return;
		out->ms[i] = now_ms() - begin;
	}
	qsort(out->ms, LAUNCHES, sizeof out->ms[0], by_size);
}

static bool is_launched(const struct timing *t)
{
	return t->e.kind == ERR_NONE;
}

/* ---- for programs ------------------------------------------------------------------ */

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *rows_json(const struct doctor_report *r, enum doctor_area area)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_rows; i++) {
		const struct doctor_row *row = &r->rows[i];

		if (row->area == area)
			json_array_append_new(list, json_pack("{ss,ss,so,so,so}", "name", row->name,
			                                      "state", state_names[row->state],
			                                      "by", text_or_null(row->by), "detail",
			                                      text_or_null(row->detail), "fix",
			                                      text_or_null(row->fix)));
	}
	return list;
}

static json_t *timing_json(const struct timing *t)
{
	if (!is_launched(t))
		return json_pack("{sb,ss}", "ok", 0, "error", t->e.msg);
	return json_pack("{sb,sf,si}", "ok", 1, "median_ms", t->ms[LAUNCHES / 2], "launches",
	                 LAUNCHES);
}

static void print_json(const struct doctor_report *r, const struct timing *t, struct str *out)
{
	json_t *o = json_object();

	json_object_set_new(o, "kernel", text_or_null(r->kernel));
	json_object_set_new(o, "cgroup", text_or_null(r->cgroup));
	json_object_set_new(o, "mode", json_string(area_names[r->mode]));
	json_object_set_new(o, "enforceable", json_boolean(r->is_enforceable && is_launched(t)));
	for (enum doctor_area a = 0; a < DOCTOR_AREAS; a++)
		json_object_set_new(o, area_names[a], rows_json(r, a));
	json_object_set_new(o, "launch", timing_json(t));
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(4));

	str_addf(out, "%s\n", text ? text : "{}");
	free(text);
	json_decref(o);
}

/* ---- for people -------------------------------------------------------------------- */

static const char *by_or_state(const struct doctor_row *row)
{
	if (row->by)
		return row->by;
	return row->state == DOCTOR_UNKNOWN ? "not known" : "none";
}

static void print_walls(const struct doctor_report *r, struct str *out)
{
	str_add(out, "\nwalls\n");
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct doctor_row *row = &r->rows[i];

		if (row->area == DOCTOR_WALLS)
			str_addf(out, "  %-8s %-11s %s\n", state_names[row->state], row->name,
			         row->by ? row->by : "");
	}
}

static const struct doctor_row *find(const struct doctor_report *r, enum doctor_area area,
                                     const char *name)
{
	for (size_t i = 0; i < r->n_rows; i++)
		if (r->rows[i].area == area && strcmp(r->rows[i].name, name) == 0)
			return &r->rows[i];
	return NULL;
}

/* The two modes side by side: they have the same fields. */
static void print_modes(const struct doctor_report *r, struct str *out)
{
	str_addf(out, "\n%-21s %-24s %s\n", "enforced by",
	         r->mode == DOCTOR_ROOT ? "root mode (this)" : "root mode",
	         r->mode == DOCTOR_ROOT ? "rootless mode" : "rootless mode (this)");
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct doctor_row *row = &r->rows[i];
		const struct doctor_row *other;

		if (row->area != DOCTOR_ROOT)
			continue;
		other = find(r, DOCTOR_ROOTLESS, row->name);
		str_addf(out, "  %-19s %-24s %s\n", row->name, by_or_state(row),
		         other ? by_or_state(other) : "");
	}
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* One cause may take several fields: then it is told once, with all their names. */
static bool is_one_finding(const struct doctor_row *a, const struct doctor_row *b)
{
	return a->area == b->area && a->state == b->state && is_same(a->by, b->by) &&
	       is_same(a->detail, b->detail) && is_same(a->fix, b->fix);
}

static bool is_told(const struct doctor_report *r, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_one_finding(&r->rows[k], &r->rows[i]))
			return true;
	return false;
}

static void print_finding(const struct doctor_report *r, size_t i, struct str *out)
{
	const struct doctor_row *row = &r->rows[i];
	bool is_mode = row->area == DOCTOR_ROOT || row->area == DOCTOR_ROOTLESS;

	str_addf(out, "  %s%s%s", is_mode ? area_names[row->area] : "", is_mode ? " mode: " : "",
	         row->name);
	for (size_t k = i + 1; k < r->n_rows; k++)
		if (is_one_finding(row, &r->rows[k]))
			str_addf(out, ", %s", r->rows[k].name);
	if (row->by)
		str_addf(out, " (%s)", row->by);
	str_addf(out, ": %s\n", row->detail);
	if (row->fix)
		str_addf(out, "      %s\n", row->fix);
}

static void print_findings(const struct doctor_report *r, enum doctor_state state, struct str *out)
{
	bool is_first = true;

	for (size_t i = 0; i < r->n_rows; i++) {
		if (r->rows[i].state != state || !r->rows[i].detail || is_told(r, i))
			continue;
		if (is_first)
			str_addf(out, "\n%s\n", state_names[state]);
		is_first = false;
		print_finding(r, i, out);
	}
}

static void print_text(const struct doctor_report *r, const struct timing *t, struct str *out)
{
	str_addf(out, "Linux %s, cgroup %s, %s mode\n", r->kernel, r->cgroup, area_names[r->mode]);
	print_walls(r, out);
	print_modes(r, out);
	print_findings(r, DOCTOR_MISSING, out);
	print_findings(r, DOCTOR_UNKNOWN, out);
	print_findings(r, DOCTOR_WEAK, out);
	if (is_launched(t))
		str_addf(out, "\none launch: %.1f ms (median of %d)\n", t->ms[LAUNCHES / 2],
		         LAUNCHES);
	else
		str_addf(out, "\none launch: failed: %s\n", t->e.msg);
	str_addf(out, "the default spec %s be enforced in %s mode\n",
	         r->is_enforceable && is_launched(t) ? "can" : "cannot", area_names[r->mode]);
}

int doctor_main(int argc, char **argv, const struct driver *driver)
{
	AUTO(str_done) struct str out = { .max = REPORT_BYTES_MAX };
	static struct doctor_report r; /* 5 KiB of rows */
	struct timing t;
	bool is_json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") != 0) {
			fprintf(stderr, "caisson: unknown option %s: caisson doctor [--json]\n",
			        argv[i]);
			return EXIT_OURS;
		}
		is_json = true;
	}
	r = (struct doctor_report){ .mode = DOCTOR_ROOTLESS };
	driver->inspect(&r);
	doctor_setup(&r);
	time_launches(driver, &t);
	if (is_json)
		print_json(&r, &t, &out);
	else
		print_text(&r, &t, &out);
	arena_done(&r.arena);
	if (fputs(str_text(&out), stdout) < 0 || fflush(stdout) != 0) {
		fprintf(stderr, "caisson: write to stdout: %s\n", strerror(errno));
		return EXIT_OURS;
	}
	return r.is_enforceable && is_launched(&t) ? 0 : EXIT_UNENFORCEABLE;
}
