package io.github.nodewise;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.github.nodewise.v1.Configurations;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Predicate;

/**
 * Gathers measured rows, observations or timed phases, that state the same columns, in one message.
 *
 * @param <M> Observations or PhaseTimings: columns, and configurations that are columns themselves
 */
final class RowGatherer<M extends Message> {
  private final M empty;
  private final FieldDescriptor ran;
  private Message.Builder gathered;
  private List<Object> shape;
  private int count;

  RowGatherer(M empty) {
    this.empty = empty;
    this.ran = empty.getDescriptorForType().findFieldByName("configurations");
    clear();
  }

  /** Rows that are held. */
  int count() {
    return count;
  }

  /** Rows of a message: its longest column is as long. */
  int rows(M message) {
    Message configurations = (Message) message.getField(ran);
    return Math.max(longest(message), longest(configurations));
  }

  /**
   * Whether single rows of a message can be told apart here. Those placed node by node and those
   * with groups cannot, nor can columns that are neither of one entry nor of one for each row.
   */
  boolean canBeCut(M message) {
    int rows = rows(message);
    Predicate<Message> plain =
        part ->
            columns(part).stream()
                .allMatch(
                    column -> {
                      int entries = part.getRepeatedFieldCount(column);
                      boolean packed = column.getName().matches("(placement|group)_.*");
                      return isDictionary(column) || (!packed && (entries == 1 || entries == rows));
                    });
    return rows > 0 && plain.test(message) && plain.test((Message) message.getField(ran));
  }

  /** Whether rows of a message may stand beside those held. */
  boolean fits(M message) {
    return count == 0 || shape(message).equals(shape);
  }

  /** Add rows of a message that can be cut. */
  void add(M message, int begin, int end) {
    int rows = rows(message);
    shape = shape(message);
    append(message, gathered, rows, begin, end);
    append((Message) message.getField(ran), gathered.getFieldBuilder(ran), rows, begin, end);
    count += end - begin;
  }

  /** The rows held, which are held no longer. */
  @SuppressWarnings("unchecked")
  M take() {
    if (gathered.getFieldBuilder(ran).build().getSerializedSize() == 0) {
      gathered.clearField(ran);
    }
    M message = (M) gathered.build();
    clear();
    return message;
  }

  private void clear() {
    gathered = empty.newBuilderForType();
    shape = List.of();
    count = 0;
  }

  private void append(Message from, Message.Builder into, int rows, int begin, int end) {
    boolean first = count == 0;
    for (FieldDescriptor column : columns(from)) {
      List<?> entries = (List<?>) from.getField(column);
      if (isDictionary(column)) {
        if (first) {
          into.setField(column, entries);
        }
        continue;
      }
      List<?> added =
          entries.size() == rows
              ? entries.subList(begin, end)
              : Collections.nCopies(end - begin, entries.get(0));
      added.forEach(entry -> into.addRepeatedField(column, entry));
    }
  }

  /** Which columns a message states, and the dictionaries that indexes are counted by. */
  private List<Object> shape(M message) {
    List<Object> found = new ArrayList<>();
    for (Message part : List.of(message, (Message) message.getField(ran))) {
      for (FieldDescriptor column : columns(part)) {
        found.add(column.getFullName());
        if (isDictionary(column)) {
          found.add(part.getField(column));
        }
      }
    }
    return found;
  }

  private static int longest(Message part) {
    return columns(part).stream()
        .filter(column -> !isDictionary(column))
        .mapToInt(part::getRepeatedFieldCount)
        .max()
        .orElse(0);
  }

  private static List<FieldDescriptor> columns(Message part) {
    Descriptor type = part.getDescriptorForType();
    return type.getFields().stream()
        .filter(FieldDescriptor::isRepeated)
        .filter(column -> part.getRepeatedFieldCount(column) > 0)
        .toList();
  }

  private static boolean isDictionary(FieldDescriptor column) {
    return column.getContainingType() == Configurations.getDescriptor()
        && (column.getName().equals("device_names") || column.getName().equals("offer_names"));
  }
}
