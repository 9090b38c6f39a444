/*
 * table.h - rows for people: columns side by side, foreign text made harmless.
 */
#pragma once

#include "base/str.h"
#include "base/vec.h"

#define TABLE_COLUMNS_MAX 12

struct table {
	size_t n_columns;
	VEC(char *) cells; /* row by row, the heads first */
};

void table_init(struct table *t, const char *const *heads); /* ends with NULL */
void table_cell(struct table *t, const char *text);         /* any bytes; NULL is a dash */
void table_cellf(struct table *t, const char *fmt, ...) PRINTF(2, 3);
/* Lines are cut to `width` columns; 0: never. */
void table_print(const struct table *t, size_t width, struct str *out);
void table_clear(struct table *t);

/* Numbers as people read them. */
struct brief {
	char text[24];
};
struct brief brief_bytes(uint64_t n);     /* "1.5G" */
struct brief brief_duration(uint64_t ms); /* "850ms", "12s", "3m", "5h", "2d" */
struct brief brief_age(int64_t since_ms); /* of a moment by the clock; "" when it is none */
size_t terminal_width(void);              /* of standard output; 0: it is no terminal */
size_t terminal_height(void);
