package io.github.nodewise;

import io.github.nodewise.v1.IntervalBasis;
import io.github.nodewise.v1.NamedColumn;
import io.github.nodewise.v1.PredictionColumn;
import io.github.nodewise.v1.Predictions;
import io.github.nodewise.v1.Problem;
import io.github.nodewise.v1.QuantileColumn;
import io.github.nodewise.v1.RowStatus;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;

/**
 * One row of an answer. What is empty was not asked for, is not known, or was not predicted: there
 * is never a NaN, and never a 0 that means nothing.
 */
public final class PredictionRow {
  private static final OptionalDouble NOTHING = OptionalDouble.empty();

  private final PredictionRows rows;
  private final Predictions columns;
  private final int index;

  PredictionRow(PredictionRows rows, int index) {
    this.rows = rows;
    this.columns = rows.columns;
    this.index = index;
  }

  /** What became of the row. */
  public RowStatus status() {
    RowStatus status =
        columns.getStatusesCount() == 0
            ? RowStatus.ROW_STATUS_ANSWERED
            : columns.getStatuses(index);
    return status == RowStatus.ROW_STATUS_UNSPECIFIED ? RowStatus.ROW_STATUS_ANSWERED : status;
  }

  /** The same as a number, which tells a status that this release does not know. */
  public int statusNumber() {
    return status() == RowStatus.UNRECOGNIZED
        ? columns.getStatusesValue(index)
        : status().getNumber();
  }

  /** Whether the row was predicted. */
  public boolean answered() {
    return status() == RowStatus.ROW_STATUS_ANSWERED;
  }

  /** Why it was not predicted, where it was refused. */
  public Optional<Problem> refusal() {
    int refusal = answered() ? -1 : rows.refusal(index);
    return refusal < 0 ? Optional.empty() : Optional.of(columns.getRefusals(refusal).getProblem());
  }

  /** Machines that run workers, as resolved. */
  public int nodes() {
    return columns.getNodesCount() == 0 ? 0 : columns.getNodes(index);
  }

  /** Workers, as resolved. */
  public int workers() {
    return columns.getWorkersCount() == 0 ? 0 : columns.getWorkers(index);
  }

  /** Seconds of a step: asynchronous, the cycle of one worker; otherwise one global batch. */
  public OptionalDouble stepSeconds() {
    return answered() && columns.getStepSecondsCount() > 0
        ? stated(columns.getStepSeconds(index))
        : NOTHING;
  }

  /** Steps per second of the whole job. */
  public OptionalDouble stepsPerSecond() {
    return answered() && columns.getStepsPerSecondCount() > 0
        ? stated(columns.getStepsPerSecond(index))
        : NOTHING;
  }

  /** Samples per second of the whole job; empty also where the batch is not known. */
  public OptionalDouble samplesPerSecond() {
    return answered() && columns.getSamplesPerSecondCount() > 0
        ? stated(columns.getSamplesPerSecond(index))
        : NOTHING;
  }

  /** Lower bound of {@link #stepsPerSecond()}. */
  public OptionalDouble lowerStepsPerSecond() {
    return bounded() ? OptionalDouble.of(columns.getLowerStepsPerSecond(index)) : NOTHING;
  }

  /** Upper bound of {@link #stepsPerSecond()}. */
  public OptionalDouble upperStepsPerSecond() {
    return bounded() ? OptionalDouble.of(columns.getUpperStepsPerSecond(index)) : NOTHING;
  }

  /** Lower bound of {@link #samplesPerSecond()}. */
  public OptionalDouble lowerSamplesPerSecond() {
    return bounded() ? inSamples(columns.getLowerStepsPerSecond(index)) : NOTHING;
  }

  /** Upper bound of {@link #samplesPerSecond()}. */
  public OptionalDouble upperSamplesPerSecond() {
    return bounded() ? inSamples(columns.getUpperStepsPerSecond(index)) : NOTHING;
  }

  /** Probability, 0 to 1, that the measured throughput lies within the bounds. */
  public OptionalDouble intervalCoverage() {
    return bounded() && columns.hasIntervalCoverage()
        ? OptionalDouble.of(columns.getIntervalCoverage())
        : NOTHING;
  }

  /** Where the bounds come from; UNSPECIFIED where there are none. */
  public IntervalBasis intervalBasis() {
    return bounded() ? rows.intervalBasis : IntervalBasis.INTERVAL_BASIS_UNSPECIFIED;
  }

  /** Parts of {@link #stepSeconds()} by name, in seconds of exposed time; they add up to it. */
  public Map<String, Double> breakdownSeconds() {
    return named(PredictionColumn.PREDICTION_COLUMN_BREAKDOWN, columns.getBreakdownSecondsList());
  }

  /** What the step waits for most. */
  public Optional<String> bottleneck() {
    if (!answered()
        || columns.getBottleneckIndexesCount() == 0
        || !rows.has(PredictionColumn.PREDICTION_COLUMN_BREAKDOWN)) {
      return Optional.empty();
    }
    String name = columns.getBottleneckNames(columns.getBottleneckIndexes(index));
    return name.isEmpty() ? Optional.empty() : Optional.of(name);
  }

  /** Share of time, 0 to 1, that each station is busy. */
  public Map<String, Double> utilization() {
    return named(PredictionColumn.PREDICTION_COLUMN_UTILIZATION, columns.getUtilizationList());
  }

  /** Mean updates by others between a worker's download and its upload. */
  public OptionalDouble stalenessMeanSteps() {
    return answered()
            && columns.getStalenessMeanStepsCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_STALENESS)
        ? OptionalDouble.of(columns.getStalenessMeanSteps(index))
        : NOTHING;
  }

  /** 95th percentile of the same. */
  public OptionalDouble stalenessP95Steps() {
    return answered()
            && columns.getStalenessP95StepsCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_STALENESS)
        ? OptionalDouble.of(columns.getStalenessP95Steps(index))
        : NOTHING;
  }

  /** How far outside the evidence: 1 = within, 2 = twice the largest scale that it identifies. */
  public OptionalDouble extrapolationRatio() {
    return answered() && columns.getExtrapolationRatiosCount() > 0
        ? stated(columns.getExtrapolationRatios(index))
        : NOTHING;
  }

  /** Memory per device, bytes; of rows that do not fit too. */
  public OptionalDouble memoryBytes() {
    return columns.getMemoryBytesCount() > 0 && rows.has(PredictionColumn.PREDICTION_COLUMN_MEMORY)
        ? stated(columns.getMemoryBytes(index))
        : NOTHING;
  }

  /** Memory missing per device, bytes, of rows that do not fit. */
  public OptionalDouble excessMemoryBytes() {
    return columns.getExcessMemoryBytesCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_MEMORY)
        ? stated(columns.getExcessMemoryBytes(index))
        : NOTHING;
  }

  /** Seconds to do the work asked about, else all of the workload's epochs. */
  public OptionalDouble finishSeconds() {
    return answered()
            && columns.getFinishSecondsCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_WORK)
        ? stated(columns.getFinishSeconds(index))
        : NOTHING;
  }

  /** Cost of that work, in the currency of the offers. */
  public OptionalDouble cost() {
    return answered() && columns.getCostsCount() > 0 && finishSeconds().isPresent()
        ? OptionalDouble.of(columns.getCosts(index))
        : NOTHING;
  }

  /** Seconds spent once besides the steps; part of {@link #finishSeconds()}. */
  public OptionalDouble onceSeconds() {
    return answered() && columns.getOnceSecondsCount() > 0
        ? stated(columns.getOnceSeconds(index))
        : NOTHING;
  }

  /** What else the estimator has to say, by names that carry units. */
  public Map<String, Double> extra() {
    return named(PredictionColumn.PREDICTION_COLUMN_EXTRA, columns.getExtraList());
  }

  /** Global batch, samples, as resolved or chosen. */
  public OptionalDouble globalBatchSamples() {
    return answered()
            && columns.getGlobalBatchSamplesCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_GOODPUT)
        ? stated(columns.getGlobalBatchSamples(index))
        : NOTHING;
  }

  /** Samples per worker and micro-step, as resolved or chosen. */
  public OptionalDouble batchPerWorkerSamples() {
    return answered()
            && columns.getBatchPerWorkerSamplesCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_GOODPUT)
        ? stated(columns.getBatchPerWorkerSamples(index))
        : NOTHING;
  }

  /** Micro-steps between two exchanges, as resolved or chosen. */
  public OptionalInt accumulationSteps() {
    int steps =
        answered()
                && columns.getAccumulationStepsCount() > 0
                && rows.has(PredictionColumn.PREDICTION_COLUMN_GOODPUT)
            ? columns.getAccumulationSteps(index)
            : 0;
    return steps == 0 ? OptionalInt.empty() : OptionalInt.of(steps);
  }

  /** Samples per second times statistical efficiency. */
  public OptionalDouble goodputSamplesPerSecond() {
    return answered()
            && columns.getGoodputSamplesPerSecondCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_GOODPUT)
        ? stated(columns.getGoodputSamplesPerSecond(index))
        : NOTHING;
  }

  /** Quantiles of {@link #finishSeconds()} in seconds, by probability, 0 to 1. */
  public Map<Double, Double> finishSecondsQuantiles() {
    return quantiles(columns.getFinishSecondsQuantilesList());
  }

  /** Quantiles of {@link #cost()} in the currency of the offers, by probability, 0 to 1. */
  public Map<Double, Double> costQuantiles() {
    return quantiles(columns.getCostQuantilesList());
  }

  /** Mean revocations of nodes until the work is done. */
  public OptionalDouble revocationsMean() {
    return answered()
            && columns.getRevocationsMeansCount() > 0
            && rows.has(PredictionColumn.PREDICTION_COLUMN_RISK)
        ? OptionalDouble.of(columns.getRevocationsMeans(index))
        : NOTHING;
  }

  @Override
  public String toString() {
    return "PredictionRow[nodes="
        + nodes()
        + ", workers="
        + workers()
        + ", samplesPerSecond="
        + samplesPerSecond()
        + ", status="
        + status()
        + "]";
  }

  private boolean bounded() {
    return answered()
        && columns.getUpperStepsPerSecondCount() > 0
        && rows.has(PredictionColumn.PREDICTION_COLUMN_INTERVAL)
        && columns.getUpperStepsPerSecond(index) != 0;
  }

  private OptionalDouble inSamples(double stepsPerSecond) {
    double samples =
        columns.getSamplesPerSecondCount() == 0 ? 0 : columns.getSamplesPerSecond(index);
    double steps = columns.getStepsPerSecond(index);
    return samples == 0 || steps == 0
        ? NOTHING
        : OptionalDouble.of(stepsPerSecond * (samples / steps));
  }

  private static OptionalDouble stated(double value) {
    return value == 0 ? NOTHING : OptionalDouble.of(value);
  }

  private Map<String, Double> named(PredictionColumn column, List<NamedColumn> held) {
    Map<String, Double> values = new LinkedHashMap<>();
    if (answered() && rows.has(column)) {
      held.forEach(each -> values.put(each.getName(), each.getValues(index)));
    }
    return values;
  }

  private Map<Double, Double> quantiles(List<QuantileColumn> held) {
    Map<Double, Double> values = new LinkedHashMap<>();
    if (rows.has(PredictionColumn.PREDICTION_COLUMN_RISK) && finishSeconds().isPresent()) {
      held.forEach(each -> values.put(each.getProbability(), each.getValues(index)));
    }
    return values;
  }
}
