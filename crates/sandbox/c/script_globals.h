/* Globals of a script without proxies in between. */
#ifndef PERILUNE_SANDBOX_SCRIPT_GLOBALS_H
#define PERILUNE_SANDBOX_SCRIPT_GLOBALS_H

#include "sandbox.h"

void open_script_globals(sandbox *S, int globals);
/* Gives the script at the top its globals for the run. */
void hand_globals(sandbox *S, lua_State *L);
/* Gives the function at the top, whose reference it is, globals that are its own, if it has not got them yet and may have
 * them: it is given no lists. */
void hand_plain_globals(sandbox *S, lua_State *L, int reference);
/* Whether that was done. */
int has_plain_globals(const sandbox *S, int reference);
/* Pushes the keys and the other arguments. */
void push_lists(lua_State *L, const sandbox_run *run);
/* Makes places for the lists in the globals; the names are there, and all other globals. */
void place_lists(sandbox *S);
/* Takes lists of its own from the globals of a script that has run. */
void take_lists(sandbox *S, int reference);
/* The reference is that of another script, or none's. */
void forget_traits(sandbox *S, int reference);

#endif
