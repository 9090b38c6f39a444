/*
 * inspect.h - the engine's view of the host, in the words of `caisson doctor`.
 */
#pragma once

#include "cli/doctor.h"

void inspect_host(struct doctor_report *out);
