import io.github.nodewise.*;
import io.github.nodewise.v1.*;
import java.util.List;

class Predict {
  public static void main(String[] arguments) {
    String target = System.getenv().getOrDefault("NODEWISE_SERVER", "127.0.0.1:50551");
    var settings = ConfigurationSettings.newBuilder().setDeviceName("V100")
        .setSyncMode(SyncMode.SYNC_MODE_ASYNC).setBatchPerWorkerSamples(32).build();
    var ran = Requests.configurations(List.of(new ConfigurationRow(1, 1, settings)));
    var timed = PhaseTimings.newBuilder().setConfigurations(ran) // of a short run on one node, seconds
        .addDownloadSeconds(0.08).addComputeSeconds(0.21).addUploadSeconds(0.08).addUpdateSeconds(0.004);
    try (NodewiseClient client = NodewiseClient.connect(target)) {
      var reply = client.predict(PredictRequest.newBuilder()
          .setProfile(Requests.profile(ProfileContent.newBuilder().setPhaseTimings(timed).build()))
          .addRanges(Requests.nodeRange(1, 16)).build());
      for (PredictionRow row : PredictionRows.of(reply)) {
        row.samplesPerSecond().ifPresent(rate -> System.out.printf("%d nodes: %.0f samples/s%n", row.nodes(), rate));
      }
      System.out.println("recommended: " + reply.getRecommendation().getNodes() + " nodes; " + reply.getRecommendation().getWhy());
    }
  }
}
