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
      var profile = Requests.profile(ProfileContent.newBuilder().setPhaseTimings(timed).build()); // or of a name
      var range = Requests.nodeRange(1, 16);

      // Predict: one job.
      var reply = client.predict(PredictRequest.newBuilder().setProfile(profile).addRanges(range).build());
      for (PredictionRow row : PredictionRows.of(reply)) {
        row.samplesPerSecond().ifPresent(rate -> System.out.printf("%d nodes: %.0f samples/s%n", row.nodes(), rate));
      }
      System.out.println("recommended: " + reply.getRecommendation().getNodes() + " nodes; " + reply.getRecommendation().getWhy());

      // BatchPredict: many jobs, each with an answer or a problem of its own.
      var batch = client.batchPredict(BatchPredictRequest.newBuilder().addRanges(range)
          .addJobs(BatchJob.newBuilder().setProfile(profile))
          .addJobs(BatchJob.newBuilder().setProfile(Requests.profile("nobody"))).build());
      for (JobRows job : JobRows.of(batch)) {
        job.recommended().ifPresent(best -> System.out.println("best: " + best.nodes() + " nodes"));
        job.problem().ifPresent(problem -> System.out.println("no answer: " + problem.getReason()));
      }

      // Schedule: all jobs of a cluster. Send the reply's policy_state with the next request.
      var shares = client.schedule(ScheduleRequest.newBuilder()
          .setCluster(Cluster.newBuilder().addPools(Requests.pool("rack", "V100", 4, 4)))
          .addJobs(ScheduleJob.newBuilder().setJobId("first").setProfile(profile).setRemainingSamples(1e6)).build());
      for (JobAllocation job : shares.getAllocationsList()) {
        System.out.println(job.getJobId() + ": " + job.getDevicesCount() + " devices, " + job.getWhy());
      }
    }
  }
}
