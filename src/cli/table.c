#include "cli/table.h"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "wire/escape.h"

#define CELL_BYTES_MAX 4096
#define LINE_BYTES_MAX ((size_t)2 * TABLE_COLUMNS_MAX * CELL_BYTES_MAX)
#define GAP 2

void table_init(struct table *t, const char *const *heads)
{
	*t = (struct table){ 0 };
	for (; heads[t->n_columns]; t->n_columns++)
		vec_push(&t->cells, mem_strdup(heads[t->n_columns]));
}

void table_cell(struct table *t, const char *text)
{
	AUTO(str_done) struct str cell = { .max = CELL_BYTES_MAX };

	/* Each byte of it may become five: what does not fit is cut, not dropped. */
	escape_text(text && *text ? text : "-", &cell);
	vec_push(&t->cells, mem_strdup(str_text(&cell)));
}

void table_cellf(struct table *t, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	table_cell(t, text);
}

/* Columns of a terminal: code points, since what is not visible was escaped. */
static size_t columns_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Bytes of the first `n` code points. */
static size_t bytes_of(const char *text, size_t n)
{
	size_t at = 0;

	while (text[at] && (n > 0 || (text[at] & 0xc0) == 0x80)) {
		n -= (text[at] & 0xc0) != 0x80;
		at++;
	}
	return at;
}

static void measure(const struct table *t, size_t widths[TABLE_COLUMNS_MAX])
{
	for (size_t i = 0; i < t->cells.len; i++) {
		size_t n = columns_of(t->cells.at[i]), column = i % t->n_columns;

		if (n > widths[column])
			widths[column] = n;
	}
}

static void print_row(const struct table *t, size_t row, const size_t *widths, struct str *line)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *cell = t->cells.at[row * t->n_columns + i];

		str_add(line, cell);
		if (i + 1 < t->n_columns)
			str_addf(line, "%*s", (int)(widths[i] + GAP - columns_of(cell)), "");
	}
}

void table_print(const struct table *t, size_t width, struct str *out)
{
	size_t widths[TABLE_COLUMNS_MAX] = { 0 };

	measure(t, widths);
	for (size_t row = 0; row < t->cells.len / t->n_columns; row++) {
		AUTO(str_done) struct str line = { .max = LINE_BYTES_MAX };

		print_row(t, row, widths, &line);
		str_addn(out, str_text(&line), width ? bytes_of(str_text(&line), width) : line.len);
		str_add(out, "\n");
	}
}

void table_clear(struct table *t)
{
	for (size_t i = 0; i < t->cells.len; i++)
		free(t->cells.at[i]);
	vec_done(&t->cells);
}

struct brief brief_bytes(uint64_t n)
{
	static const char units[] = "BKMGTPE";
	struct brief b;
	double value = (double)n;
	size_t i = 0;

	for (; value >= 1024 && i + 2 < sizeof units; i++)
		value /= 1024;
	snprintf(b.text, sizeof b.text, value < 10 && i > 0 ? "%.1f%c" : "%.0f%c", value, units[i]);
	return b;
}

struct brief brief_duration(uint64_t ms)
{
	static const struct {
		uint64_t ms;
		const char *unit;
	} units[] = {
		{ 86400000, "d" }, { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" }
	};
	struct brief b = { "0ms" };

	for (size_t i = 0; i < COUNT(units); i++) {
		if (ms >= units[i].ms) {
			snprintf(b.text, sizeof b.text, "%llu%s",
			         (unsigned long long)(ms / units[i].ms), units[i].unit);
			break;
		}
	}
	return b;
}

struct brief brief_age(int64_t since_ms)
{
	struct timespec now;

	if (since_ms <= 0)
		return (struct brief){ "" };
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - since_ms;
	return brief_duration(ms < 0 ? 0 : (uint64_t)ms);
}

static struct winsize terminal_size(void)
{
	struct winsize ws = { 0 };

	if (isatty(STDOUT_FILENO))
		(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws);
	return ws;
}

size_t terminal_width(void)
{
	return terminal_size().ws_col;
}

size_t terminal_height(void)
{
	return terminal_size().ws_row;
}
