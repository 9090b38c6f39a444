/*
 * settings.h - the config file of whoever starts a daemon, flags over it, and the command line of
 * the launcher that comes of both.
 */
#pragma once

#include "cli/address.h"
#include "spec/config.h"

#define SETTINGS_ARGS_MAX (CONFIG_TEXTS_MAX + 8)

struct settings {
	struct config flags;      /* to be filled by the caller */
	struct config file;       /* what the file says */
	struct config all;        /* what counts: flags, file, defaults */
	char path[PATH_TEXT_MAX]; /* of the file; "": none was read */
};

void settings_init(struct settings *s);
void settings_done(struct settings *s);
/* `named` is --config: a file, "none", or NULL for the usual place, where there may be none. */
int settings_load(struct settings *s, const char *named, struct err *e) MUST_USE;
/* A file into a config, if whoever could write it may say such things. */
int settings_read(struct config *c, const char *path, struct err *e) MUST_USE;
/* The file alone, into s->file. */
int settings_file(struct settings *s, const char *named, struct err *e) MUST_USE;
/* NULL-terminated; the texts belong to the settings. */
void settings_args(struct settings *s, const char *program, char *out[SETTINGS_ARGS_MAX]);
