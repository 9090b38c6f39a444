/*
 * help.h - help, man page and shell completion, from the table of verbs.
 */
#pragma once

#include "cli/verb.h"

/* argv[0] is "help": `help`, `help VERB`, `help --man`. */
int help_main(const struct verb_table *t, int argc, char **argv);
/* argv[0] is "completion": `completion bash`, `completion zsh`. */
int completion_main(const struct verb_table *t, int argc, char **argv);

void help_list(const struct verb_table *t, struct str *out);
void help_man(const struct verb_table *t, struct str *out);        /* man.c */
void completion_bash(const struct verb_table *t, struct str *out); /* completion.c */
void completion_zsh(const struct verb_table *t, struct str *out);  /* completion.c */
