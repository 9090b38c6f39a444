/*
 * request.c - requests on their way: from the loop into the queue, and back as answers.
 */
#include "base/fd.h"
#include "store/store-internal.h"

struct request *request_new(const struct op *op, size_t args_bytes)
{
	struct request *q = mem_alloc(sizeof *q);

	q->op = op;
	q->args = arena_alloc(&q->arena, args_bytes);
	q->bytes = args_bytes;
	return q;
}

void request_drop(struct request **q)
{
	if (!*q)
		return;
	arena_done(&(*q)->arena);
	free(*q);
	*q = NULL;
}

void list_add(struct request_list *list, struct request *q)
{
	q->next = NULL;
	if (list->last)
		list->last->next = q;
	else
		list->first = q;
	list->last = q;
	list->n++;
}

struct request *list_take(struct request_list *list)
{
	struct request *q = list->first;

	if (!q)
		return NULL;
	list->first = q->next;
	list->n--;
	if (!list->first)
		list->last = NULL;
	q->next = NULL;
	return q;
}

int refuse_state(struct store *s, struct request *q, const struct table *t, const char *id,
                 const char *wanted, struct err *e)
{
	char state[STATE_NAME_MAX];

	if (row_state(&s->writer, t, id, state, e) < 0)
		return -1;
	if (!state[0]) {
		q->answer.code = STORE_NOT_FOUND;
		return err_new(e, ERR_NOT_FOUND, "no %s %s", t->noun, id);
	}
	q->answer.code = STORE_CONFLICT;
	if (!wanted)
		return err_new(e, ERR_INVALID, "%s %s is %s", t->noun, id, state);
	return err_new(e, ERR_INVALID, "%s %s is %s and cannot become %s", t->noun, id, state,
	               wanted);
}

void store_nudge(struct store *s)
{
	pthread_cond_signal(&s->has_work);
}

int request_send(struct store *s, struct request **q, struct store_call call, struct err *e)
{
	struct request *sent = *q;

	if (s->n_waiting >= STORE_QUEUE_MAX || s->bytes_waiting >= STORE_QUEUE_BYTES)
		return err_new(e, ERR_LIMIT, "%zu requests wait for the store", s->n_waiting);
	sent->call = call;
	pthread_mutex_lock(&s->lock);
	bool is_closing = s->is_closing;

	if (!is_closing)
		list_add(&s->queue, sent);
	pthread_mutex_unlock(&s->lock);
	if (is_closing)
		return err_new(e, ERR_INTERNAL, "the store is being closed");
	if (!call.is_lazy)
		store_nudge(s); /* not before: it would wake up to a taken lock */
	*q = NULL;
	s->n_waiting++;
	s->bytes_waiting += sent->bytes;
	return 0;
}

bool done_add(struct store *s, struct request_list *list)
{
	bool is_first = list->n > 0 && s->done.n == 0;

	for (struct request *q = NULL; (q = list_take(list));)
		list_add(&s->done, q);
	return is_first;
}

void done_ring(struct store *s)
{
	uint64_t one = 1;

	if (write(s->event_fd, &one, sizeof one) < 0)
		abort(); /* an eventfd takes 2^64 - 1 of these */
}

void store_dispatch(struct store *s)
{
	uint64_t count = 0;

	/* Before the list is taken: what is added after that rings again. */
	if (read(s->event_fd, &count, sizeof count) < 0 && errno != EAGAIN)
		abort();
	pthread_mutex_lock(&s->lock);
	struct request_list done = s->done;

	s->done = (struct request_list){ 0 };
	pthread_mutex_unlock(&s->lock);

	for (struct request *q = NULL; (q = list_take(&done));) {
		s->n_waiting--;
		s->bytes_waiting -= q->bytes;
		q->answer.err = q->answer.code == STORE_OK ? NULL : &q->err;
		if (q->call.done)
			q->call.done(q->call.arg, &q->answer);
		request_drop(&q);
	}
}

int store_fd(const struct store *s)
{
	return s->event_fd;
}

size_t store_waiting(const struct store *s)
{
	return s->n_waiting;
}
