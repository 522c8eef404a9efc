package io.github.nodewise;

import io.github.nodewise.v1.Basis;
import io.github.nodewise.v1.BatchJobOutcome;
import io.github.nodewise.v1.BatchPredictResponse;
import io.github.nodewise.v1.Problem;
import io.github.nodewise.v1.Recommendation;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * What became of one job of a batch.
 *
 * @param rows its rows; none where it has a problem or is unchanged
 * @param problem why it could not be answered
 * @param unchanged whether the digest that was asked about still holds
 * @param recommendation the recommended row, counted from the job's first
 * @param basis what the answer rests on
 */
public record JobRows(
    PredictionRows rows,
    Optional<Problem> problem,
    boolean unchanged,
    Optional<Recommendation> recommendation,
    Optional<Basis> basis) {

  /** The recommended row, where there is one. */
  public Optional<PredictionRow> recommended() {
    return recommendation.map(found -> rows.get(found.getRow()));
  }

  /**
   * The jobs of an answer. Of architectures there are none: read their rows by {@link
   * PredictionRows#of(io.github.nodewise.v1.Predictions)}, and how they rank from the answer.
   *
   * @param response the answer
   * @return one entry for each job, in the order asked
   */
  public static List<JobRows> of(BatchPredictResponse response) {
    List<JobRows> jobs = new ArrayList<>(response.getOutcomesCount());
    for (int number = 0; number < response.getOutcomesCount(); number++) {
      BatchJobOutcome outcome = response.getOutcomes(number);
      boolean told = number + 1 < response.getRowOffsetsCount();
      int begin = told ? response.getRowOffsets(number) : 0;
      int end = told ? response.getRowOffsets(number + 1) : 0;
      jobs.add(
          new JobRows(
              PredictionRows.part(response.getPredictions(), begin, end, outcome),
              outcome.hasProblem() ? Optional.of(outcome.getProblem()) : Optional.empty(),
              outcome.getUnchanged(),
              outcome.hasRecommendation()
                  ? Optional.of(outcome.getRecommendation())
                  : Optional.empty(),
              outcome.hasBasisIndex()
                  ? Optional.of(response.getBases(outcome.getBasisIndex()))
                  : Optional.empty()));
    }
    return jobs;
  }
}
