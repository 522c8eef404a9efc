package io.github.nodewise;

import io.github.nodewise.v1.BatchJobOutcome;
import io.github.nodewise.v1.IntervalBasis;
import io.github.nodewise.v1.PredictResponse;
import io.github.nodewise.v1.PredictionColumn;
import io.github.nodewise.v1.Predictions;
import io.github.nodewise.v1.RowRefusal;
import java.util.AbstractList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.RandomAccess;
import java.util.Set;

/**
 * The rows of an answer, which comes as columns: an unmodifiable list, of which nothing is copied
 * until it is asked for.
 */
public final class PredictionRows extends AbstractList<PredictionRow> implements RandomAccess {
  final Predictions columns;
  final IntervalBasis intervalBasis;
  private final int begin;
  private final int end;
  private final Set<PredictionColumn> held;
  private int[] refusals;

  private PredictionRows(
      Predictions columns,
      int begin,
      int end,
      Set<PredictionColumn> held,
      IntervalBasis intervalBasis) {
    this.columns = columns;
    this.intervalBasis = intervalBasis;
    this.begin = begin;
    this.end = end;
    this.held = held;
  }

  /**
   * The rows of an answer about one job.
   *
   * @param response the answer
   * @return its rows, in the order of the question
   */
  public static PredictionRows of(PredictResponse response) {
    return of(response.getPredictions());
  }

  /**
   * The rows of predictions.
   *
   * @param columns the predictions
   * @return their rows
   */
  public static PredictionRows of(Predictions columns) {
    return new PredictionRows(
        columns,
        0,
        columns.getRowsCount(),
        EnumSet.allOf(PredictionColumn.class),
        columns.getIntervalBasis());
  }

  /** The rows of one job among those of others, with the columns that it has. */
  static PredictionRows part(Predictions columns, int begin, int end, BatchJobOutcome outcome) {
    Set<PredictionColumn> held = EnumSet.noneOf(PredictionColumn.class);
    held.addAll(outcome.getColumnsList());
    return new PredictionRows(columns, begin, end, held, outcome.getIntervalBasis());
  }

  @Override
  public int size() {
    return end - begin;
  }

  @Override
  public PredictionRow get(int index) {
    if (index < 0 || index >= end - begin) {
      throw new IndexOutOfBoundsException("row " + index + " of " + size());
    }
    return new PredictionRow(this, begin + index);
  }

  boolean has(PredictionColumn column) {
    return held.contains(column);
  }

  /** The refusal of a row; -1 = there is none. */
  int refusal(int row) {
    if (refusals == null) {
      int[] found = new int[columns.getRowsCount()];
      Arrays.fill(found, -1);
      for (int number = columns.getRefusalsCount() - 1; number >= 0; number--) {
        RowRefusal refusal = columns.getRefusals(number);
        for (int each = 0; each < refusal.getRowsCount(); each++) {
          found[refusal.getRows(each)] = number;
        }
      }
      refusals = found;
    }
    return refusals[row];
  }
}
