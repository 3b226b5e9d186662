/*
 * How a run is stopped from another thread, and how deep its C stack may become.
 *
 * To stop a run, another thread stores its number and sends a signal to the thread that runs it. The handler sets
 * a hook, which raises an error at the next instruction, and again and again until the script has ended, whatever
 * it catches. LuaJIT is built so that compiled loops look at the hook too; our own C functions look at the number.
 * The signal is SIGURG: its default is to be ignored, and system calls are restarted (SA_RESTART), so that one that
 * comes late does no harm.
 */
#include "stop.h"

#include <signal.h>

static __thread sandbox *volatile on_this_thread;

int is_stopped(const sandbox *S)
{
    return S->ending || (S->current != 0 && atomic_load_explicit(&S->stop, memory_order_acquire) == S->current);
}

static void on_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    if (is_stopped(sandbox_of(L)))
        luaL_error(L, "the script was stopped");
    else
        lua_sethook(L, NULL, 0, 0);
}

/* NB: off and on again, since the signal may have come while LuaJIT was changing its dispatch itself. */
static void set_hook(sandbox *S)
{
    lua_sethook(S->L, NULL, 0, 0);
    lua_sethook(S->L, on_hook, LUA_MASKCOUNT, 1);
}

static void on_signal(int number)
{
    (void)number;
    sandbox *S = on_this_thread;
    if (S != NULL && is_stopped(S))
        set_hook(S);
}

void catch_signal(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGURG, &action, NULL);
}

void check_stop(sandbox *S, lua_State *L)
{
    if (is_stopped(S)) {
        set_hook(S);
        luaL_error(L, "the script was stopped");
    }
}

void check_depth(sandbox *S, lua_State *L)
{
    if (S->stack - (const char *)__builtin_frame_address(0) > STACK_BYTES)
        luaL_error(L, "C stack overflow");
}

int sandbox_stop(sandbox *S, uint64_t number)
{
    pthread_mutex_lock(&S->mutex);
    int runs = S->running == number && number != 0;
    if (runs) {
        atomic_store_explicit(&S->stop, number, memory_order_release);
        pthread_kill(S->thread, SIGURG);
    }
    pthread_mutex_unlock(&S->mutex);
    return runs;
}

void begin_stoppable(sandbox *S, uint64_t number)
{
    S->stack = (const char *)__builtin_frame_address(0);
    S->current = number;
    pthread_mutex_lock(&S->mutex);
    S->thread = pthread_self();
    S->running = number;
    pthread_mutex_unlock(&S->mutex);
    S->outer = on_this_thread;
    on_this_thread = S;
}

void end_stoppable(sandbox *S)
{
    on_this_thread = S->outer;
    atomic_signal_fence(memory_order_seq_cst);
    pthread_mutex_lock(&S->mutex);
    S->running = 0;
    pthread_mutex_unlock(&S->mutex);
    if (lua_gethookmask(S->L) != 0)
        lua_sethook(S->L, NULL, 0, 0);
}
