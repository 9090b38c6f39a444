/*
 * attest.c - what was promoted of a workspace, as the ledger attests it. The daemon carries it.
 */
#include "api/handlers.h"
#include "base/fd.h"
#include "core/ledger.h"
#include "core/workspace.h"
#include "os/extent.h"
#include "wire/dsse.h"

static json_t *read_envelope(int fd)
{
	AUTO(str_done) struct str text = { .max = DSSE_BYTES_MAX };
	char buf[16384];
	off_t at = 0;
	int n;

	while ((n = os_pread(fd, buf, sizeof buf, at)) > 0 && !text.overflow) {
		str_addn(&text, buf, (size_t)n);
		at += n;
	}
	return n < 0 || text.overflow ? NULL : json_loadb(str_text(&text), text.len, 0, NULL);
}

static void attested(void *arg, int envelope_fd, uint64_t first, uint64_t next)
{
	AUTO(fd_close) int fd = envelope_fd;
	struct call *c = arg;
	struct fail f = { 0 };
	json_t *envelope = fd < 0 ? NULL : read_envelope(fd);

	(void)next;
	if (envelope) {
		answer_json(c, 200, envelope);
	} else {
		fail_set(
		    &f, fd < 0 && first == 0 ? FAIL_NOT_FOUND : FAIL_BACKEND_ERROR, "%s",
		    fd < 0 && first == 0
			? "nothing of it was promoted: no commit, merge, push or apply is on record"
			: "the ledger could not attest it");
		answer_fail(c, &f);
	}
	call_unref(c);
}

void workspace_attest(struct call *c)
{
	struct wsx *w = call_workspace(c);
	uint64_t record = 0;
	struct fail f = { 0 };

	if (!w)
		return;
	if (query_number(c, "record", &record, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	const struct ledger_who who = { .tenant = w->row.tenant, .workspace = w->row.id };

	ledger_attest(c->api->core, &who, record, attested, call_ref(c));
}
