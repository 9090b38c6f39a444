/*
 * openapi.h - the API described for machines: OpenAPI 3.1, made from the tables that answer.
 */
#pragma once

#include <jansson.h>

json_t *openapi_document(void); /* a new one */
const char *openapi_text(void); /* made once, kept for the life of the process */
