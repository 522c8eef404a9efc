package io.github.nodewise;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nodewise.v1.BatchJobOutcome;
import io.github.nodewise.v1.BatchPredictResponse;
import io.github.nodewise.v1.ConfigurationSettings;
import io.github.nodewise.v1.Configurations;
import io.github.nodewise.v1.PredictionColumn;
import io.github.nodewise.v1.Predictions;
import io.github.nodewise.v1.Problem;
import io.github.nodewise.v1.RowRefusal;
import io.github.nodewise.v1.RowStatus;
import io.github.nodewise.v1.SyncMode;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class RowsTest {
  private static Predictions.Builder three() {
    return Predictions.newBuilder()
        .setRowsCount(3)
        .addAllNodes(List.of(1, 2, 4))
        .addAllWorkers(List.of(1, 2, 4))
        .addAllStepSeconds(List.of(0.5, 0.4, 0.0))
        .addAllStepsPerSecond(List.of(2.0, 2.5, 0.0))
        .addAllSamplesPerSecond(List.of(64.0, 160.0, 0.0))
        .addAllLowerStepsPerSecond(List.of(1.0, 0.0, 0.0))
        .addAllUpperStepsPerSecond(List.of(3.0, 5.0, 0.0))
        .addAllMemoryBytes(List.of(1e9, 2e9, 9e9))
        .addAllStatuses(
            List.of(
                RowStatus.ROW_STATUS_ANSWERED,
                RowStatus.ROW_STATUS_ANSWERED,
                RowStatus.ROW_STATUS_INFEASIBLE_MEMORY))
        .addRefusals(
            RowRefusal.newBuilder()
                .addRows(2)
                .setProblem(Problem.newBuilder().setReason("INFEASIBLE_MEMORY")));
  }

  @Test
  void figuresAreThoseOfTheColumns() {
    PredictionRows rows = PredictionRows.of(three().build());
    assertEquals(3, rows.size());
    PredictionRow second = rows.get(1);
    assertEquals(2, second.nodes());
    assertEquals(OptionalDouble.of(160.0), second.samplesPerSecond());
    assertEquals(OptionalDouble.of(0.0), second.lowerSamplesPerSecond());
    assertEquals(OptionalDouble.of(320.0), second.upperSamplesPerSecond());
    assertTrue(
        second.finishSeconds().isEmpty()
            && second.bottleneck().isEmpty()
            && second.cost().isEmpty());
    assertTrue(second.refusal().isEmpty());
    assertThrows(IndexOutOfBoundsException.class, () -> rows.get(3));
    assertThrows(UnsupportedOperationException.class, () -> rows.remove(0));
  }

  @Test
  void aRowThatWasNotAnsweredHasItsReasonAndNoFigures() {
    PredictionRow third = PredictionRows.of(three().build()).get(2);
    assertFalse(third.answered());
    assertEquals(RowStatus.ROW_STATUS_INFEASIBLE_MEMORY, third.status());
    assertEquals("INFEASIBLE_MEMORY", third.refusal().orElseThrow().getReason());
    assertTrue(third.stepSeconds().isEmpty() && third.samplesPerSecond().isEmpty());
    assertTrue(third.upperSamplesPerSecond().isEmpty());
    assertEquals(OptionalDouble.of(9e9), third.memoryBytes());
  }

  @Test
  void aStatusOfANewerServerIsANumber() {
    PredictionRow row = PredictionRows.of(three().setStatusesValue(0, 77).build()).get(0);
    assertEquals(RowStatus.UNRECOGNIZED, row.status());
    assertEquals(77, row.statusNumber());
    assertFalse(row.answered());
    assertTrue(row.stepSeconds().isEmpty());
  }

  @Test
  void aJobHasTheColumnsThatItsOutcomeLists() {
    var columns = PredictionColumn.PREDICTION_COLUMN_MEMORY;
    BatchPredictResponse reply =
        BatchPredictResponse.newBuilder()
            .setPredictions(three())
            .addAllRowOffsets(List.of(0, 1, 1, 3))
            .addOutcomes(BatchJobOutcome.newBuilder().addColumns(columns))
            .addOutcomes(
                BatchJobOutcome.newBuilder()
                    .setProblem(Problem.newBuilder().setReason("PROFILE_NOT_FOUND")))
            .addOutcomes(BatchJobOutcome.getDefaultInstance())
            .build();
    List<JobRows> jobs = JobRows.of(reply);
    assertEquals(List.of(1, 0, 2), jobs.stream().map(job -> job.rows().size()).toList());
    assertEquals(OptionalDouble.of(1e9), jobs.get(0).rows().get(0).memoryBytes());
    assertEquals("PROFILE_NOT_FOUND", jobs.get(1).problem().orElseThrow().getReason());
    assertTrue(jobs.get(2).rows().get(0).memoryBytes().isEmpty());
    assertEquals(OptionalDouble.of(160.0), jobs.get(2).rows().get(0).samplesPerSecond());
    assertTrue(jobs.get(0).recommended().isEmpty());
  }

  @Test
  void configurationsAreMadeOfRows() {
    var v100 =
        ConfigurationSettings.newBuilder()
            .setDeviceName("V100")
            .setSyncMode(SyncMode.SYNC_MODE_ASYNC);
    Configurations made =
        Requests.configurations(
            List.of(
                new ConfigurationRow(1, 1, v100.build()),
                new ConfigurationRow(2, 8, v100.setDeviceName("T4").build(), List.of(6, 2)),
                new ConfigurationRow(3, 3, v100.build())));
    assertEquals(List.of("V100", "T4"), made.getDeviceNamesList());
    assertEquals(List.of(0, 1, 1), made.getDeviceIndexesList());
    assertEquals(List.of(1, 2, 3), made.getNodesList());
    assertEquals(List.of(0, 0, 2, 2), made.getPlacementOffsetsList());
    assertEquals(List.of(6, 2), made.getPlacementWorkersList());
    var stated = ConfigurationSettings.newBuilder().setParameterServers(2).build();
    String told =
        assertThrows(
                IllegalArgumentException.class,
                () ->
                    Requests.configurations(
                        List.of(new ConfigurationRow(1, 1, stated), new ConfigurationRow(2, 2))))
            .getMessage();
    assertTrue(told.contains("parameter_servers"), told);
  }
}
