/*
 * The memory of scripts: each sandbox has a limit, and all sandboxes of a pool have one together.
 *
 * Lua's blocks pass `counted`, the allocator of its state; buffers in C ask count_in() first; the host is told
 * room_left() with each question, and what it then takes is counted. A sandbox takes memory from its pool in
 * portions of 256 KiB, so that for most blocks one comparison is enough, and gives back after each run what it
 * does not use. Example: with 300 KiB in use 512 KiB are taken from the pool; when 100 KiB are left after the run,
 * 256 KiB go back.
 *
 * Blocks of up to 256 bytes that Lua frees are kept by size for the next script: most live for one script.
 *
 * Invariants
 * - Memory is counted before it is allocated; that of the host, which was told how much it may take, when it has
 *   answered.
 * - A sandbox uses no more than its limit, except what it used already when its limit was lowered.
 *
 * Not shared: all of it is memory of one process, so that a process that is killed leaves nothing behind.
 */
#include "memory.h"

#include "stop.h"

enum { PORTION = 256 << 10 /* bytes that are taken from the pool at a time */ };

/* Which blocks kept free have room for so many bytes: their number, and their size. */
static size_t kind_of(size_t size)
{
    return (size - 1) / SMALL_STEP;
}

static size_t size_of(size_t kind)
{
    return (kind + 1) * SMALL_STEP;
}

static void set_ceiling(sandbox *S)
{
    S->ceiling = S->limit < S->granted ? S->limit : S->granted;
}

/* Takes from the pool what `more` bytes lack; 0 if it has them not. */
static int grant(sandbox *S, size_t more)
{
    size_t wanted = S->used + more;
    if (wanted < more || wanted > S->limit)
        return 0;
    size_t portion = (wanted - S->granted + PORTION - 1) / PORTION * PORTION;
    size_t limit = atomic_load_explicit(&S->pool->limit, memory_order_relaxed);
    size_t before = atomic_fetch_add_explicit(&S->pool->used, portion, memory_order_relaxed);
    if (before + portion > limit) {
        atomic_fetch_sub_explicit(&S->pool->used, portion, memory_order_relaxed);
        return 0;
    }
    S->granted += portion;
    set_ceiling(S);
    return 1;
}

int count_in(sandbox *S, size_t more)
{
    size_t used = S->used + more;
    if ((used > S->ceiling || used < more) && !grant(S, more))
        return 0;
    S->used = used;
    return 1;
}

void count_taken(sandbox *S, size_t more)
{
    S->used += more;
    if (S->used > S->ceiling)
        grant(S, 0);
}

void count_in_or_raise(sandbox *S, lua_State *L, size_t more)
{
    /* NB: LuaJIT halves the buffer that it makes strings in with each collection. */
    for (int collections = 0; !count_in(S, more); collections++) {
        if (collections == 4 || more > S->limit)
            luaL_error(L, "not enough memory");
        while (!lua_gc(L, LUA_GCSTEP, 64))
            check_stop(S, L);
    }
}

size_t room_left(const sandbox *S)
{
    size_t own = S->limit > S->used ? S->limit - S->used : 0;
    size_t limit = atomic_load_explicit(&S->pool->limit, memory_order_relaxed);
    size_t taken = atomic_load_explicit(&S->pool->used, memory_order_relaxed);
    size_t common = (limit > taken ? limit - taken : 0) + (S->granted > S->used ? S->granted - S->used : 0);
    return own < common ? own : common;
}

void settle(sandbox *S)
{
    size_t wanted = (S->used + PORTION - 1) / PORTION * PORTION;
    if (S->granted > wanted) {
        atomic_fetch_sub_explicit(&S->pool->used, S->granted - wanted, memory_order_relaxed);
        S->granted = wanted;
    }
    set_ceiling(S);
}

void sandbox_limit(sandbox *S, size_t limit)
{
    S->limit = limit;
    set_ceiling(S);
}

/* Counts what LuaJIT's own allocator gives, and keeps small blocks that are given back: most live for one script. No
 * block that it has ever given is smaller than its kind. */
void *counted(void *ud, void *block, size_t old_size, size_t new_size)
{
    sandbox *S = ud;
    if (new_size == 0) {
        S->used -= old_size;
        size_t kind = kind_of(old_size);
        if (kind < SMALL_KINDS && S->free_bytes < SMALL_KEPT) {
            free_block *freed = block;
            freed->next = S->free[kind];
            S->free[kind] = freed;
            S->free_bytes += size_of(kind);
            return NULL;
        }
        return S->allocate(S->allocator, block, old_size, 0);
    }
    if (new_size > old_size && S->used + (new_size - old_size) > S->ceiling && !grant(S, new_size - old_size))
        return NULL;
    size_t kind = kind_of(new_size), size = new_size;
    if (kind < SMALL_KINDS) {
        free_block *found = S->free[kind];
        if (block == NULL && found != NULL) {
            S->free[kind] = found->next;
            S->free_bytes -= size_of(kind);
            S->used += new_size;
            return found;
        }
        size = size_of(kind);
    }
    void *given = S->allocate(S->allocator, block, old_size, size);
    if (given != NULL)
        S->used += new_size - old_size;
    return given;
}
