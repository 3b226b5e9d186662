/*
 * A libyottadb that does nothing: what mg-dbx-napi costs by itself. Each function says at once that all is well; what reads
 * answers the same eleven characters. Built by bench/check.
 */
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned int len_alloc;
    unsigned int len_used;
    char *buf_addr;
} ydb_buffer_t;

static int answer(ydb_buffer_t *to, const char *text, unsigned int size)
{
    if (to && to->buf_addr && to->len_alloc >= size) {
        memcpy(to->buf_addr, text, size);
        to->len_used = size;
    }
    return 0;
}

static int eleven(ydb_buffer_t *to)
{
    return answer(to, "hello world", 11);
}

int ydb_init(void)
{
    return 0;
}

int ydb_exit(void)
{
    return 0;
}

void *ydb_malloc(size_t size)
{
    return malloc(size);
}

void ydb_free(void *block)
{
    free(block);
}

int ydb_data_s(const ydb_buffer_t *name, int count, const ydb_buffer_t *subscripts, unsigned int *data)
{
    (void)name, (void)count, (void)subscripts;
    *data = 1;
    return 0;
}

int ydb_set_s(const ydb_buffer_t *name, int count, const ydb_buffer_t *subscripts, const ydb_buffer_t *value)
{
    (void)name, (void)count, (void)subscripts, (void)value;
    return 0;
}

int ydb_delete_s(const ydb_buffer_t *name, int count, const ydb_buffer_t *subscripts, int type)
{
    (void)name, (void)count, (void)subscripts, (void)type;
    return 0;
}

int ydb_get_s(const ydb_buffer_t *name, int count, const ydb_buffer_t *subscripts, ydb_buffer_t *value)
{
    static const char VERSION[] = "GT.M V6.3-014 Linux x86_64";

    (void)count, (void)subscripts;
    /* Its version is asked for when it is opened. */
    if (name->len_used > 0 && name->buf_addr[0] == '$')
        return answer(value, VERSION, sizeof VERSION - 1);
    return eleven(value);
}

int ydb_subscript_next_s(const ydb_buffer_t *name, int count, const ydb_buffer_t *subscripts, ydb_buffer_t *value)
{
    (void)name, (void)count, (void)subscripts;
    return eleven(value);
}

int ydb_subscript_previous_s(const ydb_buffer_t *name, int count, const ydb_buffer_t *subscripts, ydb_buffer_t *value)
{
    (void)name, (void)count, (void)subscripts;
    return eleven(value);
}

int ydb_incr_s(const ydb_buffer_t *name, int count, const ydb_buffer_t *subscripts, const ydb_buffer_t *by, ydb_buffer_t *value)
{
    (void)name, (void)count, (void)subscripts, (void)by;
    return eleven(value);
}

int ydb_node_next_s(void)
{
    return 0;
}

int ydb_node_previous_s(void)
{
    return 0;
}

int ydb_lock_incr_s(void)
{
    return 0;
}

int ydb_lock_decr_s(void)
{
    return 0;
}

int ydb_tp_s(void)
{
    return 0;
}

int ydb_ci(void)
{
    return 0;
}

int ydb_cip(void)
{
    return 0;
}

int ydb_zstatus(char *text, int size)
{
    if (size > 0)
        text[0] = 0;
    return 0;
}
