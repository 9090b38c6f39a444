#include "bin/oneshot.h"

#include "bin/inspect.h"
#include "engine/enforce.h"
#include "engine/landlock.h"
#include "launcher/launcher.h"
#include "monitor/monitor.h"

struct oneshot {
	struct plan plan;
	struct sandbox sandbox;
};

static int check_host(const struct spec *spec, struct launcher_host *host, struct run_session *out,
                      struct err *e)
{
	struct enforce_row rows[ENFORCE_ROWS_MAX];

	if (launcher_mode(&host->is_root, e) < 0)
		return -1;
	int r = cgroup_find(&host->cgroup, host->is_root);
	if (r < 0)
		return err_sys(e, -r, "look at the cgroups");
	struct enforce_host judged = { .is_root = host->is_root,
		                       .cgroup = &host->cgroup,
		                       .has_landlock = landlock_abi() > 0 };
	if (enforce_check(spec, &judged, e) < 0)
		return -1;
	out->n_enforced = enforce_rows(spec, &judged, rows);
	for (size_t i = 0; i < out->n_enforced; i++)
		out->enforced[i] = (struct enforced){ rows[i].field, rows[i].by, rows[i].reason };

	return 0;
}

static int start(const struct run_setup *setup, struct run_session *out, struct err *e)
{
	struct plan_command command = { .argv = setup->argv,
		                        .cwd = setup->cwd,
		                        .is_tty = setup->is_tty,
		                        .has_stdin = setup->has_stdin,
		                        .timeout_ms = setup->timeout_ms,
		                        .wants_usage = setup->wants_usage,
		                        .rows = setup->rows,
		                        .cols = setup->cols };
	struct launcher_host host;
	struct oneshot *o = mem_alloc(sizeof *o);

	o->plan.image_fd = -1;

	if (check_host(setup->spec, &host, out, e) < 0 ||
	    plan_make(&o->plan, setup->spec, command, e) < 0 ||
	    launcher_start(&o->sandbox, &o->plan, &host, monitor_main, e) < 0) {
		plan_done(&o->plan);
		free(o);
		return -1;
	}
	out->channel_fd = o->sandbox.control_fd;
	out->cwd = plan_text(&o->plan, o->plan.cwd);
	out->driver_data = o;
	return 0;
}

static void ebb(struct run_session *s)
{
	struct oneshot *o = s->driver_data;

	launcher_ebb(&o->sandbox);
}

static void end(struct run_session *s)
{
	struct oneshot *o = s->driver_data;

	launcher_end(&o->sandbox);
	s->channel_fd = -1;
}

static int sweep(bool dry_run, void (*found)(const char *what, bool is_gone))
{
	return launcher_sweep(dry_run, true, found);
}

const struct driver oneshot_driver = {
	.start = start, .ebb = ebb, .end = end, .sweep = sweep, .inspect = inspect_host
};
