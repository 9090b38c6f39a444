/*
 * docker_logs.c - what the main process of a container wrote, in all its lives.
 */
#include <unistd.h>

#include "base/vec.h"
#include "cli/docker-internal.h"
#include "wire/base64.h"
#include "wire/escape.h"

#define EVENT_BYTES_MAX (4u << 20)
#define TAIL_MAX (1u << 30) /* more lines than any log has: all of them */

struct logs {
	struct verb_opts common;
	bool is_followed, has_times, has_details;
	const char *tail, *since, *until;
};

/* Lines wait here when only the last ones are wanted. */
struct line {
	char *text;
	size_t len;
	bool is_err;
};

struct printer {
	const struct logs *opts;
	int64_t started_ms; /* of the process that is read */
	struct str bytes;
	struct str rest[2]; /* of a line that has not ended: standard output, standard error */
	VEC(struct line) lines;
	size_t keep; /* the last so many; SIZE_MAX: all, at once */
	int64_t seq;
};

static void printer_done(struct printer *p)
{
	for (size_t i = 0; i < p->lines.len; i++)
		free(p->lines.at[i].text);
	vec_done(&p->lines);
	str_done(&p->bytes);
	str_done(&p->rest[0]);
	str_done(&p->rest[1]);
}

static int put(const char *text, size_t n, bool is_err, struct err *e)
{
	int fd = is_err ? STDERR_FILENO : STDOUT_FILENO;
	struct escape x = { .keeps_lines = true };
	AUTO(str_done) struct str shown = { .max = (size_t)8 * EVENT_BYTES_MAX };

	if (!isatty(fd))
		return write_all(fd, text, n, e);
	escape_feed(&x, text, n, &shown); /* nobody attached: it is only shown */
	escape_end(&x, &shown);
	return write_all(fd, str_text(&shown), shown.len, e);
}

static int put_line(struct printer *p, const char *text, size_t n, bool is_err, struct err *e)
{
	if (p->keep == SIZE_MAX)
		return put(text, n, is_err, e);
	struct line line = { mem_alloc(n + 1), n, is_err };

	memcpy(line.text, text, n);
	vec_push(&p->lines, line);
	if (p->lines.len > 2 * p->keep + 64) { /* the first ones will not be wanted */
		size_t drop = p->lines.len - p->keep;

		for (size_t i = 0; i < drop; i++)
			free(p->lines.at[i].text);
		memmove(p->lines.at, p->lines.at + drop, p->keep * sizeof *p->lines.at);
		p->lines.len = p->keep;
	}
	return 0;
}

/* Whole lines; what is left waits for its end. */
static int take_lines(struct printer *p, bool is_err, int64_t at_ms, struct err *e)
{
	struct str *rest = &p->rest[is_err];

	for (size_t from = 0; from < p->bytes.len;) {
		const char *text = p->bytes.data + from;
		const char *end = memchr(text, '\n', p->bytes.len - from);
		size_t n = end ? (size_t)(end - text) + 1 : p->bytes.len - from;

		if (rest->len == 0 && p->opts->has_times) {
			docker_time(at_ms, rest);
			str_add(rest, " ");
		}
		str_addn(rest, text, n);
		from += n;
		if (!end && !rest->overflow)
			return 0;
		if (put_line(p, str_text(rest), rest->len, is_err, e) < 0)
			return -1;
		str_clear(rest);
		rest->overflow = false;
	}
	return 0;
}

static int take_event(void *arg, const json_t *event, struct err *e)
{
	struct printer *p = arg;
	const json_t *data = json_object_get(event, "data");
	const json_t *coded = json_object_get(event, "base64");
	bool is_err = strcmp(text_of(event, "stream"), "stderr") == 0;

	p->seq = number_of(event, "seq");
	if (strcmp(text_of(event, "type"), "output") != 0)
		return 0;
	str_clear(&p->bytes);
	if (data)
		str_addn(&p->bytes, json_string_value(data), json_string_length(data));
	else if (!base64_decode(json_string_value(coded), json_string_length(coded), &p->bytes))
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: base64");
	if (p->keep == SIZE_MAX && !p->opts->has_times)
		return put(str_text(&p->bytes), p->bytes.len, is_err, e);
	return take_lines(p, is_err, p->started_ms + number_of(event, "ms"), e);
}

static int read_process(struct client *c, const json_t *process, bool is_followed,
                        struct printer *p, struct err *e)
{
	char after[32];
	const char *texts[] = { text_of(process, "id"), after };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };

	snprintf(after, sizeof after, "%lld", (long long)p->seq);
	p->started_ms = number_of(process, "started_ms");
	client_path(&path, "/v1/processes/{}/events?after={}", texts);
	str_add(&path, is_followed ? "&follow=1" : "");
	return fetch_lines(c, str_text(&path), take_event, p, e);
}

/* What has no end of its line yet, too. */
static int flush(struct printer *p, struct err *e)
{
	for (size_t i = 0; i < COUNT(p->rest); i++) {
		if (p->rest[i].len > 0 &&
		    put_line(p, str_text(&p->rest[i]), p->rest[i].len, i == 1, e) < 0)
			return -1;
		str_clear(&p->rest[i]);
	}
	if (p->keep == SIZE_MAX)
		return 0;
	size_t from = p->lines.len > p->keep ? p->lines.len - p->keep : 0;

	for (size_t i = from; i < p->lines.len; i++)
		if (put(p->lines.at[i].text, p->lines.at[i].len, p->lines.at[i].is_err, e) < 0)
			return -1;
	p->keep = SIZE_MAX; /* what comes now is shown at once */
	return 0;
}

static int parse_tail(const char *text, size_t *out, struct err *e)
{
	char *end = NULL;

	*out = SIZE_MAX;
	if (!text || strcmp(text, "all") == 0 || text[0] == '-')
		return 0;
	unsigned long n = strtoul(text, &end, 10);

	*out = n < TAIL_MAX ? n : SIZE_MAX;
	return *text && !*end ? 0 : err_new(e, ERR_INVALID, "invalid tail: %s", text);
}

static int logs_run(struct verb_call *c, struct err *e)
{
	const struct logs *x = c->opts;
	AUTO(box_done) struct box b = { 0 };
	AUTO(json_decrefp) json_t *list = NULL;
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	AUTO(printer_done)
	struct printer p = { .opts = x,
		             .bytes = { .max = EVENT_BYTES_MAX },
		             .rest = { { .max = EVENT_BYTES_MAX }, { .max = EVENT_BYTES_MAX } } };

	if (x->since || x->until)
		return err_new(e, ERR_INVALID, "--since and --until are refused: say --tail N");
	if (parse_tail(x->tail, &p.keep, e) < 0 || box_find(&c->client, c->words.at[0], &b, e) < 0)
		return -1;
	const char *texts[] = { box_sandbox(&b), DOCKER_MAIN };

	client_path(&path, "/v1/processes?sandbox={}&label={}", texts);
	if (fetch_list(&c->client, str_text(&path), "processes", &list, e) < 0)
		return -1;
	for (size_t i = json_array_size(list); i-- > 0;) { /* the oldest first */
		p.seq = 0;
		if (read_process(&c->client, json_array_get(list, i), false, &p, e) < 0)
			return -1;
	}
	if (flush(&p, e) < 0)
		return -1;
	if (x->is_followed && json_array_size(list) > 0 && !box_is_over(b.main) &&
	    read_process(&c->client, json_array_get(list, 0), true, &p, e) < 0)
		return -1;
	return flush(&p, e);
}

/* clang-format off */
static const struct flag logs_flags[] = {
	{ 'f',  FLAG_SWITCH, "follow",     offsetof(struct logs, is_followed), NULL, "go on until it ends", NULL },
	{ 't',  FLAG_SWITCH, "timestamps", offsetof(struct logs, has_times), NULL, "with the time of each line", NULL },
	{ 'n',  FLAG_TEXT,   "tail",       offsetof(struct logs, tail), "N", "only the last lines", NULL },
	{ '\0', FLAG_SWITCH, "details",    offsetof(struct logs, has_details), NULL, "there are no more", NULL },
	{ '\0', FLAG_TEXT,   "since",      offsetof(struct logs, since), "TIME", "refused: --tail", NULL },
	{ '\0', FLAG_TEXT,   "until",      offsetof(struct logs, until), "TIME", "refused: --tail", NULL },
};
/* clang-format on */

const struct verb docker_logs_cmd = { .name = "logs",
	                              .usage = "[OPTIONS] CONTAINER",
	                              .does = "Fetch the logs of a container",
	                              .flags = logs_flags,
	                              .n_flags = COUNT(logs_flags),
	                              .opts_size = sizeof(struct logs),
	                              .words_min = 1,
	                              .words_max = 1,
	                              .other = docker_word,
	                              .run = logs_run };
