/*
 * docker_template.h - the templates of `--format`: as much of Go's language as programs that call
 * `docker` write. Values are JSON.
 *
 *   {{.State.Status}}  {{json .}}  {{index .Labels "a"}}  {{.Label "a"}}  {{len .Mounts}}
 * {{"text"}}
 *   {{range .X}}..{{else}}..{{end}}  {{if eq .A "b"}}..{{else if .C}}..{{end}}  {{with
 * .X}}..{{end}} a | b  (...)  {{- and -}}  {{/ * comments * /}}  and the functions of the table in
 * the .c file
 *
 * There are no variables but `$`, the outermost value.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

#define TEMPLATE_LABELS "_labels" /* the member that {{.Label "name"}} looks in */

/* Adds what comes of it. A field that is not there is an error, as there. */
int template_render(const char *text, json_t *value, struct str *out, struct err *e) MUST_USE;
