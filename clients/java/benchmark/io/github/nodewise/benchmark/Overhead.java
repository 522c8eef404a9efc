package io.github.nodewise.benchmark;

import io.github.nodewise.JobRows;
import io.github.nodewise.NodewiseClient;
import io.github.nodewise.PredictionRow;
import io.github.nodewise.PredictionRows;
import io.github.nodewise.Requests;
import io.github.nodewise.v1.BatchPredictResponse;
import io.github.nodewise.v1.PredictRequest;
import io.github.nodewise.v1.PredictionServiceGrpc;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * The overhead of the client: {@code Overhead KIND COUNT} repeats one action, while the benchmark
 * measures the processor time.
 *
 * <p>KIND: {@code unary_stub} and {@code unary_client} ask {@code $NODEWISE_SERVER} one Predict, by
 * the generated stub alone and by the client, whose rows are read; {@code rows_decode} and {@code
 * rows_read} decode the BatchPredict reply in the file {@code $NODEWISE_REPLY}, and read its rows
 * as well.
 */
public final class Overhead {
  private static final PredictRequest REQUEST =
      PredictRequest.newBuilder()
          .setProfile(Requests.profile("a/b"))
          .addRanges(Requests.nodeRange(1, 16))
          .build();

  private Overhead() {}

  /**
   * Does it.
   *
   * @param words what, and how often
   * @throws IOException where the reply cannot be read
   */
  public static void main(String[] words) throws IOException {
    int count = Integer.parseInt(words[1]);
    double read =
        switch (words[0]) {
          case "unary_stub" -> byStub(count);
          case "unary_client" -> byClient(count);
          case "rows_decode" -> decoded(count, BatchPredictResponse::getOutcomesCount);
          case "rows_read" ->
              decoded(
                  count,
                  reply -> JobRows.of(reply).stream().mapToDouble(job -> total(job.rows())).sum());
          default -> throw new IllegalArgumentException("KIND is " + words[0]);
        };
    System.out.println(read);
  }

  private static double byStub(int count) {
    ManagedChannel channel =
        Grpc.newChannelBuilder(
                System.getenv("NODEWISE_SERVER"), InsecureChannelCredentials.create())
            .build();
    try {
      var stub = PredictionServiceGrpc.newBlockingStub(channel);
      double sum = 0;
      for (int call = 0; call < count; call++) {
        for (double seconds : stub.predict(REQUEST).getPredictions().getStepSecondsList()) {
          sum += seconds;
        }
      }
      return sum;
    } finally {
      channel.shutdownNow();
    }
  }

  private static double byClient(int count) {
    try (NodewiseClient client = NodewiseClient.connect(System.getenv("NODEWISE_SERVER"))) {
      double sum = 0;
      for (int call = 0; call < count; call++) {
        sum += total(PredictionRows.of(client.predict(REQUEST)));
      }
      return sum;
    }
  }

  private static double decoded(int count, ToDoubleFunction<BatchPredictResponse> read)
      throws IOException {
    byte[] bytes = Files.readAllBytes(Path.of(System.getenv("NODEWISE_REPLY")));
    double sum = 0;
    for (int time = 0; time < count; time++) {
      sum += read.applyAsDouble(BatchPredictResponse.parseFrom(bytes));
    }
    return sum;
  }

  /** What a scheduler reads of rows, through the row view. */
  private static double total(List<PredictionRow> rows) {
    double sum = 0;
    for (PredictionRow row : rows) {
      if (row.answered()) {
        sum += row.stepSeconds().orElse(0) + row.samplesPerSecond().orElse(0);
        sum += row.lowerSamplesPerSecond().orElse(0) + row.upperSamplesPerSecond().orElse(0);
        sum += row.memoryBytes().orElse(0) + row.nodes() + row.workers();
        sum += row.bottleneck().map(String::length).orElse(0);
      }
    }
    return sum;
  }
}
