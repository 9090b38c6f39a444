#include "bin/inspect.h"

#include "engine/hostcheck.h"
#include "launcher/launcher.h"

_Static_assert(DOCTOR_ROWS_MAX >= HOST_ROWS_MAX, "a report has room for all rows");

static const enum doctor_area areas[] = {
	[AREA_WALLS] = DOCTOR_WALLS,
	[AREA_ROOT] = DOCTOR_ROOT,
	[AREA_ROOTLESS] = DOCTOR_ROOTLESS,
	[AREA_SETTINGS] = DOCTOR_SETTINGS,
};

static const enum doctor_state states[] = {
	[HOST_OK] = DOCTOR_OK,
	[HOST_WEAK] = DOCTOR_WEAK,
	[HOST_MISSING] = DOCTOR_MISSING,
	[HOST_NOT_KNOWN] = DOCTOR_UNKNOWN,
};

void inspect_host(struct doctor_report *out)
{
	static struct hostfacts facts; /* some texts of the rows are in it */
	struct hostcheck_row rows[HOST_ROWS_MAX];
	struct err e;
	bool is_root = false;

	if (launcher_mode(&is_root, &e) < 0)
		is_root = true; /* the launch says what is missing */

	hostcheck_read("", is_root ? HOST_ROOT : HOST_ROOTLESS, &facts);
	hostcheck_try(&facts);
	out->mode = is_root ? DOCTOR_ROOT : DOCTOR_ROOTLESS;
	out->kernel = facts.release;
	out->cgroup = hostcheck_layout_name(facts.layout);
	out->n_rows = hostcheck_judge(&facts, &out->arena, rows);
	out->is_enforceable = hostcheck_enforceable(facts.mode, rows, out->n_rows);
	for (size_t i = 0; i < out->n_rows; i++)
		out->rows[i] = (struct doctor_row){ .area = areas[rows[i].area],
			                            .state = states[rows[i].state],
			                            .name = rows[i].name,
			                            .by = rows[i].by,
			                            .detail = rows[i].detail,
			                            .fix = rows[i].fix };
}
