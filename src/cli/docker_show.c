/*
 * docker_show.c - objects by a template, rows in columns, times as Docker writes them.
 */
#include <time.h>

#include "base/vec.h"
#include "cli/docker-internal.h"
#include "cli/docker_template.h"
#include "wire/escape.h"
#include "wire/utf8.h"

#define WIDTH_LEAST 10 /* of a column, with the space behind it */
#define SPACE 3
#define COLUMNS_MAX 32

/* ---- columns ------------------------------------------------------------------------- */

static size_t letters_of(const char *text, size_t n)
{
	size_t letters = 0;

	for (size_t i = 0; i < n; i++)
		letters += ((unsigned char)text[i] & 0xc0) != 0x80;
	return letters;
}

static void measure(const char *text, size_t widths[COLUMNS_MAX])
{
	for (size_t column = 0; *text; text++) {
		size_t n = strcspn(text, "\t\n"), width = letters_of(text, n) + SPACE;

		if (text[n] == '\t' && column < COLUMNS_MAX && widths[column] < width)
			widths[column] = width;
		column = text[n] == '\t' ? column + 1 : 0;
		text += n;
		if (!*text)
			break;
	}
}

/* Cells end with a tab; the last of a line has no width. */
static void align(const char *text, struct str *out)
{
	size_t widths[COLUMNS_MAX], column = 0;

	for (size_t i = 0; i < COLUMNS_MAX; i++)
		widths[i] = WIDTH_LEAST;
	measure(text, widths);
	while (*text) {
		size_t n = strcspn(text, "\t\n"), width = letters_of(text, n);

		str_addn(out, text, n);
		text += n;
		if (*text == '\t' && column < COLUMNS_MAX)
			str_addf(out, "%*s",
			         (int)(widths[column] > width ? widths[column] - width : 1), "");
		else if (*text == '\n')
			str_add(out, "\n");
		column = *text == '\t' ? column + 1 : 0;
		text += *text != '\0';
	}
}

/* `\t` and `\n` of a word of the caller's. */
static void unescape(const char *text, struct str *out)
{
	for (; *text; text++) {
		char c = *text;

		if (c == '\\' && (text[1] == 't' || text[1] == 'n')) {
			c = (char)(text[1] == 't' ? '\t' : '\n');
			text++;
		}
		str_addn(out, &c, 1);
	}
}

int docker_view_print(const struct docker_view *v, json_t *rows, struct err *e)
{
	static const char table[] = "table", json[] = "json";
	const char *format = v->format && *v->format ? v->format : v->otherwise;
	bool is_table = strncmp(format, table, strlen(table)) == 0;
	AUTO(str_done) struct str text = { .max = DOCKER_TEXT_MAX };
	AUTO(str_done) struct str lines = { .max = DOCKER_TEXT_MAX };
	AUTO(str_done) struct str out = { .max = (size_t)2 * DOCKER_TEXT_MAX };
	json_t *row;
	size_t i;

	if (is_table)
		format += strlen(table) + strspn(format + strlen(table), " ");
	if (is_table && !*format)
		format = v->otherwise + strlen(table) + 1;
	unescape(strcmp(format, json) == 0 ? "{{json .}}" : format, &text);
	if (is_table && template_render(str_text(&text), v->heads, &lines, e) < 0)
		return -1;
	str_add(&lines, is_table ? "\n" : "");
	json_array_foreach(rows, i, row)
	{
		if (template_render(str_text(&text), row, &lines, e) < 0)
			return -1;
		str_add(&lines, "\n");
	}
	if (!is_table)
		return print_text(&lines, e);
	align(str_text(&lines), &out);
	return print_text(&out, e);
}

int docker_print_objects(json_t *list, const char *format, struct err *e)
{
	AUTO(str_done) struct str out = { .max = DOCKER_TEXT_MAX };
	json_t *o;
	size_t i;

	if (!format || !*format || strcmp(format, "json") == 0) {
		AUTO(freep)
		char *text = json_dumps(list, format && *format ? JSON_COMPACT : JSON_INDENT(4));

		str_addf(&out, "%s\n", text);
		return print_text(&out, e);
	}
	json_array_foreach(list, i, o)
	{
		if (template_render(format, o, &out, e) < 0)
			return -1;
		str_add(&out, "\n");
	}
	return print_text(&out, e);
}

/* ---- times --------------------------------------------------------------------------- */

void docker_time(int64_t ms, struct str *out)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (ms <= 0 || !gmtime_r(&s, &tm)) {
		str_add(out, "0001-01-01T00:00:00Z");
		return;
	}
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	str_addf(out, "%s.%03dZ", text, (int)(ms % 1000));
}

void docker_ago(int64_t since_ms, struct str *out)
{
	static const struct {
		int64_t below, each;
		const char *one, *many;
	} rows[] = {
		{ 1, 1, "Less than a second", NULL },
		{ 2, 1, "1 second", NULL },
		{ 60, 1, NULL, "seconds" },
		{ 120, 60, "About a minute", NULL },
		{ 3600, 60, NULL, "minutes" },
		{ 7200, 3600, "About an hour", NULL },
		{ 172800, 3600, NULL, "hours" },
		{ 1209600, 86400, NULL, "days" },
		{ 5184000, 604800, NULL, "weeks" },
		{ 63072000, 2592000, NULL, "months" },
		{ INT64_MAX, 31536000, NULL, "years" },
	};
	struct timespec now;
	size_t i = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	int64_t s = now.tv_sec - since_ms / 1000;

	while (s >= rows[i].below && i + 1 < COUNT(rows))
		i++;
	if (rows[i].one)
		str_add(out, rows[i].one);
	else
		str_addf(out, "%lld %s", (long long)(s / rows[i].each), rows[i].many);
}
