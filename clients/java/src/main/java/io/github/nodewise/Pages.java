package io.github.nodewise;

import com.google.protobuf.Message;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * A listing: its items one after the other, each page asked for when it is needed. Iterating again
 * asks again.
 *
 * @param <T> items
 * @param <R> replies, each with a page of items
 */
public final class Pages<T, R extends Message> implements Iterable<T> {
  private final Message request;
  private final Function<Message, R> ask;
  private final Function<R, List<T>> items;

  Pages(Message request, Function<Message, R> ask, Function<R, List<T>> items) {
    this.request = request;
    this.ask = ask;
    this.items = items;
  }

  /**
   * The items of all pages.
   *
   * @return them; a call that fails throws {@link NodewiseException} where it is needed
   */
  public Stream<T> stream() {
    return StreamSupport.stream(pages().spliterator(), false)
        .flatMap(page -> items.apply(page).stream());
  }

  @Override
  public Iterator<T> iterator() {
    return stream().iterator();
  }

  /**
   * The pages as they are sent.
   *
   * @return the replies
   */
  public Iterable<R> pages() {
    return Walk::new;
  }

  private final class Walk implements Iterator<R> {
    private Message next = request;

    @Override
    public boolean hasNext() {
      return next != null;
    }

    @Override
    public R next() {
      if (next == null) {
        throw new NoSuchElementException();
      }
      R page = ask.apply(next);
      Object token = page.getField(page.getDescriptorForType().findFieldByName("next_page_token"));
      next =
          "".equals(token)
              ? null
              : next.toBuilder()
                  .setField(request.getDescriptorForType().findFieldByName("page_token"), token)
                  .build();
      return page;
    }
  }
}
