/*
 * webbody.h - bodies on their way from one side of a connection to the other, as they come.
 */
#pragma once

#include "gate/leg.h"
#include "wire/http.h"

void webbody_begin(struct http_body *b, const struct http_head *h, struct str *trailers);
/* Input becomes output until one of them is used up. MORE, DONE or an http_error. `is_raw`: chunks
 * are not printed anew. */
int webbody_move(struct http_body *b, struct leg *from, struct leg *to, bool is_raw);
/* What is behind the last byte. 0 or -1. */
int webbody_end(const struct http_body *b, const struct str *trailers, bool is_raw, struct leg *to);
/* Bytes are bytes; with their end. True when something has moved. */
bool webbody_pass(struct leg *from, struct leg *to);
