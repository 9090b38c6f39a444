#include "gate/play.h"

#include "io/journal.h"

void play_done(struct gate *g)
{
	for (size_t i = 0; i < g->mocks.len; i++)
		mock_done(&g->mocks.at[i]);
	vec_done(&g->mocks);
}

/* A host that cannot be played is not played: nothing fits its requests. */
static struct mock read_mock(const struct gate *g, const struct mock_rule *rule)
{
	struct mock m = { 0 };
	struct err e = { 0 };

	if (mock_read(&m, rule->content, strlen(rule->content), &e) < 0)
		journal(JOURNAL_WARN, "a mock is not usable", "sandbox", g->id, "file", rule->file,
		        "reason", e.msg, NULL);
	return m;
}

void play_read(struct gate *g)
{
	play_done(g);
	g->play_count++;
	for (size_t i = 0; i < g->rules.mock.len; i++)
		vec_push(&g->mocks, read_mock(g, &g->rules.mock.at[i]));
}

static const struct mock *mock_of(const struct conn *c)
{
	const struct gate *g = c->gate;
	struct question q = conn_question(c, STAGE_CONNECT);
	const struct mock_rule *rule = rules_decide(&g->rules, &q).mock;

	return rule ? &g->mocks.at[rule - g->rules.mock.at] : NULL;
}

bool play_has(const struct conn *c)
{
	return mock_of(c) != NULL;
}

const struct mock_answer *play_answer(const struct conn *c, const char *method, const char *path)
{
	static const char text[] = "caisson: no answer fits\n";
	static const struct mock_answer none = { .status = 404,
		                                 .body = text,
		                                 .body_len = sizeof text - 1 };
	const struct mock *m = mock_of(c);
	const struct mock_answer *a = m && path[0] ? mock_find(m, method, path) : NULL;

	return a ? a : &none;
}
