package io.github.nodewise;

import java.util.List;

/**
 * What a long call ended with.
 *
 * @param result the answer
 * @param messages everything that was sent but progress, in order: what was asked for besides, in
 *     pieces, and last the message that holds the result
 * @param <R> messages of the stream
 * @param <A> the answer
 */
public record LongAnswer<R, A>(A result, List<R> messages) {}
