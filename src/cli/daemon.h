/*
 * daemon.h - the driver of `caisson run` that asks the daemon (POST /v1/run).
 */
#pragma once

#include "cli/driver.h"

int daemon_start(const struct run_setup *setup, struct run_session *out, struct err *e);
int daemon_next(struct run_session *s, struct run_event *out, struct err *e);
void daemon_input(struct run_session *s, const void *bytes, size_t n);
void daemon_signal(struct run_session *s, int sig);
void daemon_resize(struct run_session *s, uint16_t rows, uint16_t cols);
void daemon_kill(struct run_session *s);
void daemon_end(struct run_session *s);
