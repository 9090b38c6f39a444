/*
 * result.h - the result object of one command (the API's, section 4).
 */
#pragma once

#include "cli/driver.h"
#include "wire/channel.h"
#include "wire/keep.h"

struct result_input {
	const struct run_session *session;
	const struct channel_end *end;
	const struct keep *kept; /* two */
	const char *cwd;
};

/* One line of JSON with its newline. */
void result_print(const struct result_input *in, struct str *out);
/* {"error":{...}} for what never ran. */
void result_print_error(const struct err *e, struct str *out);
