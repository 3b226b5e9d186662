#include "values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* While a call's arguments are read, a string's `reserved` is 1 and its pointer an offset in the arena. */
enum { IN_ARENA = 1 };

static const double SAFE = 9007199254740991.0;
static const double INT64_END = 9223372036854775808.0;

static void text_at(perilune_value *value, size_t offset, size_t size)
{
    *value = perilune_string((const char *)(uintptr_t)offset, size);
    value->reserved = IN_ARENA;
}

static bool wrong(struct call *call, size_t index, const char *what)
{
    refuse(call->here, STATUS_TYPE, "argument %zu is %s", index, what);
    return false;
}

/* The module's two symbols for a list and a map without children, told by their descriptions. */
static bool empty_in(napi_env env, napi_value given, perilune_value *value)
{
    char text[4] = "";
    size_t size = 0;
    napi_value object = NULL;
    napi_value description = NULL;

    if (napi_coerce_to_object(env, given, &object) != napi_ok ||
        napi_get_named_property(env, object, "description", &description) != napi_ok ||
        napi_get_value_string_latin1(env, description, text, sizeof text, &size) != napi_ok || size != 2)
        return false;
    if (memcmp(text, "[]", 2) != 0 && memcmp(text, "{}", 2) != 0)
        return false;
    *value = perilune_of_type(text[0] == '[' ? PERILUNE_EMPTY_LIST : PERILUNE_EMPTY_MAP);
    return true;
}

/* What is neither a number nor a string: bytes, a truth, a bigint. */
static bool other_in(struct call *call, napi_value given, size_t index, perilune_value *value, bool typed)
{
    static const char *const names[] = {"undefined", "null",      "a boolean",  "a number", "a string",
                                        "a symbol",  "an object", "a function", "external", "a bigint"};
    napi_env env = call->env;
    napi_valuetype type = napi_undefined;
    bool truth = false;
    void *bytes = NULL;
    size_t size = 0;

    napi_typeof(env, given, &type);
    if (type == napi_boolean && typed) {
        napi_get_value_bool(env, given, &truth);
        *value = perilune_bool(truth);
        return true;
    }
    if (type == napi_null && typed) {
        *value = perilune_of_type(PERILUNE_NULL);
        return true;
    }
    if (type == napi_boolean || type == napi_bigint) {
        napi_value text = NULL;
        size_t offset = 0;
        if (napi_coerce_to_string(env, given, &text) != napi_ok ||
            !text_in(call->here, text, false, &offset, &size))
            return wrong(call, index, names[type]);
        text_at(value, offset, size);
        if (type == napi_bigint && typed)
            value->type = PERILUNE_DECIMAL;
        return true;
    }
    if (napi_is_buffer(env, given, &truth) == napi_ok && truth &&
        napi_get_buffer_info(env, given, &bytes, &size) == napi_ok) {
        *value = perilune_string(bytes, size);
        return true;
    }
    if (type == napi_symbol && typed && empty_in(env, given, value))
        return true;
    return wrong(call, index, type <= napi_bigint ? names[type] : "of an unknown type");
}

bool subscript_in(struct call *call, napi_value given, size_t index, size_t slot)
{
    perilune_value *value = &call->here->values[slot];
    double number = 0;
    size_t offset = 0;
    size_t size = 0;

    if (napi_get_value_double(call->env, given, &number) == napi_ok) {
        if (number >= -INT64_END && number < INT64_END && number == (double)(int64_t)number)
            *value = perilune_int((int64_t)number);
        else if (isfinite(number))
            *value = perilune_double(number);
        else
            return wrong(call, index, isnan(number) ? "NaN" : "infinite");
        return true;
    }
    if (text_in(call->here, given, call->database->latin1, &offset, &size)) {
        text_at(value, offset, size);
        return true;
    }
    if (call->here->status == PERILUNE_OUT_OF_MEMORY)
        return false;
    return other_in(call, given, index, value, false);
}

void settle(struct call *call, size_t first, size_t end)
{
    perilune_value *values = call->here->values;

    for (size_t i = first; i < end; i++) {
        if (values[i].reserved == IN_ARENA) {
            values[i].as.s.p = call->here->arena + (uintptr_t)values[i].as.s.p;
            values[i].reserved = 0;
        }
    }
}

bool subscripts_in(struct call *call, size_t first, size_t end, bool empty)
{
    call->here->status = PERILUNE_OK;
    for (size_t i = first; i < end; i++) {
        const perilune_value *value = &call->here->values[i];
        if (!subscript_in(call, call->given[i], i, i))
            return false;
        if (!empty && value->type == PERILUNE_STRING && value->as.s.n == 0) {
            refuse(call->here, PERILUNE_INVALID, "argument %zu is an empty subscript", i);
            return false;
        }
    }
    settle(call, first, end);
    return true;
}

bool value_in(struct call *call, napi_value given, size_t index, size_t slot)
{
    struct here *here = call->here;
    perilune_value *value = &here->values[slot];
    bool typed = call->place && call->place->mode == MODE_TYPED;
    double number = 0;
    size_t offset = 0;
    size_t size = 0;

    if (text_in(here, given, call->database->latin1, &offset, &size)) {
        text_at(value, offset, size);
        return true;
    }
    if (here->status == PERILUNE_OUT_OF_MEMORY)
        return false;
    if (napi_get_value_double(call->env, given, &number) != napi_ok)
        return other_in(call, given, index, value, typed);
    if (number >= -SAFE && number <= SAFE && number == (double)(int64_t)number) {
        *value = perilune_int((int64_t)number);
        return true;
    }
    if (!isfinite(number))
        return wrong(call, index, isnan(number) ? "NaN" : "infinite");
    if (typed) {
        *value = perilune_double(number);
        return true;
    }
    napi_value text = NULL;
    if (napi_coerce_to_string(call->env, given, &text) != napi_ok || !text_in(here, text, false, &offset, &size))
        return wrong(call, index, "a number without a text");
    text_at(value, offset, size);
    return true;
}

size_t integer_text(int64_t number, char *end)
{
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *at = end;

    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        *--at = '-';
    return (size_t)(end - at);
}

napi_value value_text(struct here *here, const perilune_value *value, bool latin1)
{
    enum { NUMBER_TEXT = 512 };
    char buffer[NUMBER_TEXT];
    size_t size = 0;

    if (value->type == PERILUNE_STRING || value->type == PERILUNE_DECIMAL)
        return text_out(here, value->as.s.p, value->as.s.n, latin1);
    if (value->type == PERILUNE_INT) {
        char *end = buffer + INTEGER_TEXT;
        napi_value result = NULL;
        size = integer_text(value->as.i, end);
        napi_create_string_latin1(here->env, end - size, size, &result);
        return result;
    }
    int status = perilune_value_text(value, buffer, sizeof buffer, &size);
    if (status != PERILUNE_OK)
        return failed(here, NULL, status);
    return text_out(here, buffer, size, false);
}

/* A decimal is a number where a double is exactly it, as JavaScript would print it; else its text. */
static napi_value decimal_out(struct here *here, const perilune_value *value)
{
    char text[64];
    char again[64];
    size_t size = 0;
    napi_value result = NULL;

    if (value->as.s.n >= sizeof text)
        return value_text(here, value, false);
    memcpy(text, value->as.s.p, value->as.s.n);
    text[value->as.s.n] = 0;
    double number = strtod(text, NULL);
    int length = snprintf(again, sizeof again, "%.15g", number);
    char canonical[128];
    if (length > 0 && perilune_number_canonical(again, (size_t)length, canonical, sizeof canonical, &size) == PERILUNE_OK &&
        size == value->as.s.n && memcmp(canonical, text, size) == 0) {
        napi_create_double(here->env, number, &result);
        return result;
    }
    return value_text(here, value, false);
}

napi_value value_out(struct here *here, const perilune_value *value, int mode, bool latin1)
{
    napi_value result = NULL;

    if (value->type == PERILUNE_ABSENT)
        return nothing(here);
    if (mode == MODE_TEXT)
        return value_text(here, value, latin1);
    switch (value->type) {
    case PERILUNE_STRING:
        return text_out(here, value->as.s.p, value->as.s.n, latin1);
    case PERILUNE_INT:
        if (value->as.i >= -(int64_t)SAFE && value->as.i <= (int64_t)SAFE)
            napi_create_double(here->env, (double)value->as.i, &result);
        else
            napi_create_bigint_int64(here->env, value->as.i, &result);
        return result;
    case PERILUNE_DECIMAL:
        return decimal_out(here, value);
    case PERILUNE_DOUBLE:
        napi_create_double(here->env, value->as.d, &result);
        return result;
    case PERILUNE_BOOL:
        napi_get_boolean(here->env, value->as.i != 0, &result);
        return result;
    case PERILUNE_NULL:
        napi_get_null(here->env, &result);
        return result;
    default: {
        /* Lists and maps without children are objects of the module, which JavaScript puts in their place. */
        const char *text = value->type == PERILUNE_EMPTY_LIST ? "[]" : "{}";
        napi_value symbol = NULL;
        napi_create_string_latin1(here->env, text, 2, &symbol);
        napi_create_symbol(here->env, symbol, &result);
        return result;
    }
    }
}
