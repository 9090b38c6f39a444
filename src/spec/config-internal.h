/*
 * config-internal.h - between config.c and config_check.c: each check takes a text as opts.h says,
 * and copies it.
 */
#pragma once

#include "spec/config.h"
#include "spec/opts.h"

int check_preset(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e) MUST_USE;
int check_listen(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e) MUST_USE;
int check_switch(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e) MUST_USE;
int check_domain(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e) MUST_USE;
int check_ports(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e) MUST_USE;
int check_level(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e) MUST_USE;
int check_key(const struct opt *o, struct arena *a, const char *text, const char **out,
              struct err *e) MUST_USE;
int check_cache(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e) MUST_USE;
