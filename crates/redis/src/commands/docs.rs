//! The arguments of commands, as COMMAND DOCS tells them.

use perilune_resp::Replies;

use crate::command::Argument;

/// An array of arguments, each a map.
pub(super) fn arguments(all: &[Argument], replies: &mut Replies<'_>) {
    replies.array(all.len());
    all.iter().for_each(|argument| write(argument, replies));
}

fn write(argument: &Argument, replies: &mut Replies<'_>) {
    let Argument { name, kind, specification, token, since, until, flags, parts } = argument;
    let texts = [("token", token.as_deref()), ("since", *since), ("deprecated_since", *until)];
    let texts = texts.into_iter().filter_map(|(field, text)| Some((field, text?)));
    let fields = 2
        + usize::from(specification.is_some())
        + texts.clone().count()
        + usize::from(!flags.is_empty())
        + usize::from(!parts.is_empty());
    replies.map(fields);
    for (field, text) in [("name", *name), ("type", *kind)] {
        replies.bulk(field.as_bytes());
        replies.bulk(text.as_bytes());
    }
    if let Some(number) = specification {
        replies.bulk(b"key_spec_index");
        replies.integer(*number);
    }
    for (field, text) in texts {
        replies.bulk(field.as_bytes());
        replies.bulk(text.as_bytes());
    }
    if !flags.is_empty() {
        replies.bulk(b"flags");
        replies.set(flags.len());
        flags.iter().for_each(|flag| replies.simple(flag));
    }
    if !parts.is_empty() {
        replies.bulk(b"arguments");
        arguments(parts, replies);
    }
}
