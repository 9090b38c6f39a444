#include "core/enforced.h"

#include <jansson.h>

#include "base/advice.h"
#include "engine/hostcheck.h"

#define NOTE_MAX 4096

/* The launcher has looked at the host; here it is what enforce.h judges by. */
static void host_cgroup(const struct launch_host *h, struct cgroup *cg)
{
	static const struct {
		enum launch_controller from;
		enum cgroup_controller to;
	} same[] = { { LAUNCH_CPU, CG_CPU },
		     { LAUNCH_MEMORY, CG_MEMORY },
		     { LAUNCH_PIDS, CG_PIDS } };

	*cg = (struct cgroup){ .box_fd = -1, .mon_fd = -1 };
	for (size_t i = 0; i < COUNT(same); i++)
		if (h->by[same[i].from])
			cg->trees[cg->n_trees++] = (struct cgroup_tree){
				.is_v2 = h->by[same[i].from] == 2,
				.controllers = 1u << same[i].to,
				.tasks_fd = -1,
			};
}

/* One line for all that lack a mechanism for the same reason. */
static void add_note(const struct enforce_row *rows, size_t n, size_t first, struct str *out)
{
	const char *reason = rows[first].reason, *comma = "";

	for (size_t i = 0; i < first; i++)
		if (!rows[i].by && strcmp(rows[i].reason, reason) == 0)
			return; /* said already */
	str_add(out, "caisson: not enforced here: ");
	for (size_t i = first; i < n; i++)
		if (!rows[i].by && strcmp(rows[i].reason, reason) == 0) {
			str_addf(out, "%s%s", comma, rows[i].field);
			comma = ", ";
		}
	str_addf(out, " (%s)\n", reason);
}

void enforced_print(const struct spec *s, const struct enforce_host *host,
                    struct enforced_texts *out)
{
	struct enforce_row rows[ENFORCE_ROWS_MAX];
	size_t n = enforce_rows(s, host, rows);
	AUTO(str_done) struct str note = { .max = NOTE_MAX };
	json_t *by = json_object();

	for (size_t i = 0; i < n; i++) {
		json_object_set_new(by, rows[i].field,
		                    json_string(rows[i].by ? rows[i].by : "none"));
		if (!rows[i].by)
			add_note(rows, n, i, &note);
	}
	*out = (struct enforced_texts){ json_dumps(by, JSON_COMPACT), mem_strdup(str_text(&note)) };
	json_decref(by);
}

static enum host_mode mode_of(const struct core *c)
{
	return c->host.is_root ? HOST_ROOT : HOST_ROOTLESS;
}

static struct enforce_host host_of(const struct core *c, struct cgroup *cg, uint32_t walls)
{
	host_cgroup(&c->host, cg);
	return (struct enforce_host){ .is_root = c->host.is_root,
		                      .cgroup = cg,
		                      .walls = walls,
		                      .has_secrets = true,
		                      .net_error = (int)c->host.net_error };
}

void enforced_proved(const struct core *c, const struct spec *s, uint32_t walls,
                     struct enforced_texts *out)
{
	struct cgroup cg;
	const struct enforce_host host = host_of(c, &cg, walls);

	enforced_print(s, &host, out);
}

int enforced_judge(const struct core *c, const struct spec *s, struct enforced_texts *out,
                   struct fail *f)
{
	struct err e = { 0 };
	struct cgroup cg;
	const struct enforce_host host = host_of(c, &cg, WALLS_ALL);

	if (enforce_check(s, &host, &e) < 0) {
		const char *field = enforce_lacking(s, &host);

		if (field)
			hostcheck_advise_limit("", mode_of(c), field, &e);
		return fail_err(f, &e);
	}
	enforced_print(s, &host, out);
	return 0;
}

void enforced_advise(const struct core *c, struct err *e, bool is_of_walls)
{
	if (!hostcheck_advise("", mode_of(c), e) && is_of_walls && e->kind == ERR_INTERNAL &&
	    e->sys != 0)
		err_advise(e, ADVICE_DOCTOR);
}
