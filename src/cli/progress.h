/*
 * progress.h - one line on a terminal's standard error, while something takes longer than a second.
 */
#pragma once

#include "base/base.h"

/* Call it whenever time has passed, or bytes; what is shown is at most one line a second. */
void progress_show(const char *doing, uint64_t bytes); /* bytes 0: not said */
void progress_end(void);    /* the line goes away; the next thing starts anew */
int progress_wait_ms(void); /* until it has something new to show; -1: nobody looks */
