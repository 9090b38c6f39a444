/*
 * ledger_export.h - a record of the ledger in the words of others.
 *
 *   OCSF 1.3 (Open Cybersecurity Schema Framework): one event a record; `metadata.uid` is its hash.
 *   OTLP/HTTP (OpenTelemetry logs, as JSON): a logRecord a record; some of them, or one, are an
 *   ExportLogsServiceRequest, which is what a collector takes as body of POST /v1/logs, and as line
 *   of a file.
 *
 * What has no place there is kept: `unmapped` of OCSF, attributes of OTLP.
 */
#pragma once

#include <jansson.h>

#include "wire/ledger.h"

/* NULL: not a record. */
json_t *ledger_ocsf(struct span line) MUST_USE;
json_t *ledger_otlp(struct span line) MUST_USE; /* one logRecord */
/* A list of such, which is taken. */
json_t *ledger_otlp_request(json_t *records) MUST_USE;
