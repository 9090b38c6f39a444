/*
 * print.h - the objects of the API as JSON.
 */
#pragma once

#include "api/routes.h"
#include "core/output.h"
#include "core/process.h"

struct connection_row;
struct point_list;
struct point_row;
struct repo_row;
struct workspace_row;
struct wsx;

json_t *print_sandbox(const struct sbx *s);
json_t *print_sandbox_row(const struct sandbox_row *row);
/* The process as it is now; `kept` adds what it wrote so far (NULL: without). */
/* How it ended, for a client that shows no more. */
json_t *print_end(const struct px *p);
json_t *print_process(const struct px *p, const struct keep *kept, uint64_t seq);
json_t *print_connection(const struct connection_row *row);
/* `progress`: the last word of a clone or fetch that is under way, or NULL. */
json_t *print_repo(const struct repo_row *row, const char *progress);
json_t *print_process_row(const struct process_row *row);
json_t *print_workspace(const struct wsx *w);
json_t *print_workspace_row(const struct workspace_row *row);
json_t *print_point(const struct wsx *w, const struct point_row *row);
json_t *print_point_name(const struct wsx *w, int64_t num);
json_t *print_history(const struct wsx *w, const struct point_list *own,
                      const struct point_list *chain);
/* Lines of JSON, one for each file that differs. */
json_t *print_changes(const char *text, size_t len, bool is_stat);
/* A bounded list of files for a record: `files` says how many there are, `names` has the first. */
void print_names(json_t *record, const json_t *files);
json_t *print_problem(const struct fail *f);
/* Bytes as text, or in base64 under another name: "data" or "base64". */
void print_bytes(json_t *o, const char *key, const void *bytes, size_t n);
