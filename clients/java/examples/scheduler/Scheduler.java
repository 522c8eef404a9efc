package scheduler;

import com.google.protobuf.ByteString;
import com.google.protobuf.util.Timestamps;
import io.github.nodewise.ConfigurationRow;
import io.github.nodewise.IngestWriter;
import io.github.nodewise.JobRows;
import io.github.nodewise.NodewiseClient;
import io.github.nodewise.NodewiseException;
import io.github.nodewise.Requests;
import io.github.nodewise.v1.AppendProfileRequest;
import io.github.nodewise.v1.BatchJob;
import io.github.nodewise.v1.BatchPredictRequest;
import io.github.nodewise.v1.Cluster;
import io.github.nodewise.v1.ConfigurationSettings;
import io.github.nodewise.v1.Configurations;
import io.github.nodewise.v1.CurrentAllocation;
import io.github.nodewise.v1.IngestState;
import io.github.nodewise.v1.JobAllocation;
import io.github.nodewise.v1.Network;
import io.github.nodewise.v1.Observations;
import io.github.nodewise.v1.PhaseTimings;
import io.github.nodewise.v1.ProfileContent;
import io.github.nodewise.v1.ProfileSource;
import io.github.nodewise.v1.ScheduleJob;
import io.github.nodewise.v1.ScheduleRequest;
import io.github.nodewise.v1.SyncMode;
import io.github.nodewise.v1.Workload;
import java.io.PrintStream;
import java.time.Instant;
import java.util.List;
import java.util.Locale;

/**
 * A small cluster scheduler on Nodewise: it watches profiles, asks about all its jobs in one call,
 * schedules them, applies what was decided, and reports what was measured. clients/examples.md says
 * what it does, step by step, in every language.
 */
public final class Scheduler {
  /** Before the names of its profiles. */
  public static final String PREFIX = "examples/scheduler-java/";

  private static final int DEVICES_PER_NODE = 4;
  private static final int BATCH_SAMPLES = 32;
  private static final int ROUND_SECONDS = 600;
  private static final Instant BEGIN = Instant.parse("2026-01-01T00:00:00Z");

  private final NodewiseClient client;
  private final PrintStream out;
  private final int devices;
  private final List<Job> jobs =
      List.of(
          new Job("small", 25e6, 0.060, 0.020, 2e6),
          new Job("medium", 102e6, 0.210, 0.082, 4e6),
          new Job("large", 550e6, 0.480, 0.440, 3e6));
  private ByteString policyState = ByteString.EMPTY;
  private int decisions;
  private int observations;

  private Scheduler(NodewiseClient client, PrintStream out, int devices) {
    this.client = client;
    this.out = out;
    this.devices = devices;
  }

  /**
   * Runs it.
   *
   * @param arguments TARGET, DEVICES, ROUNDS, each may be left out
   */
  public static void main(String[] arguments) {
    try {
      String target = arguments.length > 0 ? arguments[0] : System.getenv("NODEWISE_SERVER");
      int devices = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 8;
      int rounds = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 4;
      run(System.out, target, devices, rounds);
    } catch (NodewiseException | IllegalArgumentException error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }

  /**
   * Schedules until the jobs are done, or the rounds are over.
   *
   * @param out where it tells what it does
   * @param target the server
   * @param devices of the cluster, a multiple of 4
   * @param rounds at most
   */
  public static void run(PrintStream out, String target, int devices, int rounds) {
    if (devices < DEVICES_PER_NODE || devices % DEVICES_PER_NODE != 0) {
      throw new IllegalArgumentException(
          "DEVICES is " + devices + "; nodes have 4 devices each, so give a multiple of that");
    }
    try (NodewiseClient client = NodewiseClient.connect(target)) {
      Scheduler scheduler = new Scheduler(client, out, devices);
      scheduler.appendProfiles();
      try (Revisions revisions = new Revisions(client, PREFIX)) {
        out.printf("watching %d profiles%n", revisions.caughtUp());
        scheduler.rounds(revisions, rounds);
      }
    }
  }

  private void rounds(Revisions revisions, int most) {
    int done = 0;
    while (done < most && !unfinished().isEmpty()) {
      out.printf("round %d%n", ++done);
      round(revisions, BEGIN.plusSeconds((done - 1L) * ROUND_SECONDS));
    }
    out.printf("done: %d rounds, %d decisions, %d observations%n", done, decisions, observations);
  }

  /**
   * Tells what a short run on one node has shown of each job. The same request_id again changes
   * nothing.
   */
  private void appendProfiles() {
    for (Job job : jobs) {
      PhaseTimings timed =
          PhaseTimings.newBuilder()
              .setConfigurations(ran(1, 1))
              .addDownloadSeconds(job.transferSeconds)
              .addComputeSeconds(job.computeSeconds)
              .addUploadSeconds(job.transferSeconds)
              .addUpdateSeconds(0.004)
              .addComputeVariation(0.06)
              .build();
      ProfileContent content =
          ProfileContent.newBuilder()
              .setWorkload(
                  Workload.newBuilder()
                      .setModelName(job.name)
                      .setParameterBytes(job.parameterBytes))
              .setNetwork(Network.newBuilder().setLinkBytesPerSecond(1.25e9))
              .setPhaseTimings(timed)
              .build();
      client.appendProfile(
          AppendProfileRequest.newBuilder()
              .setProfileId(PREFIX + job.name)
              .setRequestId("seed")
              .setContent(content)
              .build());
    }
  }

  private void round(Revisions revisions, Instant now) {
    List<Job> left = unfinished();
    predict(revisions, left);
    schedule(revisions, left, now);
    for (Job job : left) {
      if (job.holds == null) {
        continue;
      }
      job.holds =
          job.holds.toBuilder().setAgeSeconds(job.holds.getAgeSeconds() + ROUND_SECONDS).build();
      job.samplesLeft =
          Math.max(0, job.samplesLeft - ROUND_SECONDS * job.runs.getSamplesPerSecond());
      revisions.reached(PREFIX + job.name, report(job, now.plusSeconds(ROUND_SECONDS)));
      if (job.samplesLeft == 0) {
        job.holds = null;
        out.printf("  %s: finished%n", job.name);
      }
    }
  }

  /** Asks about all jobs in one call, on every number of workers. */
  private void predict(Revisions revisions, List<Job> left) {
    var range = Requests.workerRange(1, devices).toBuilder().setWorkersPerNode(DEVICES_PER_NODE);
    var request = BatchPredictRequest.newBuilder().addRanges(range);
    left.forEach(job -> request.addJobs(BatchJob.newBuilder().setProfile(source(revisions, job))));
    List<JobRows> answers = JobRows.of(client.batchPredict(request.build()));
    for (int index = 0; index < left.size(); index++) {
      String name = left.get(index).name;
      JobRows answer = answers.get(index);
      if (answer.recommended().isPresent()) {
        var best = answer.recommended().get();
        String rate = whole(best.samplesPerSecond().orElse(0));
        out.printf("  %s: best %d workers, %s samples/s%n", name, best.workers(), rate);
      } else {
        String reason = answer.problem().map(problem -> problem.getReason()).orElse("");
        out.printf("  %s: no prediction, %s%n", name, reason);
      }
    }
  }

  /** Shares the cluster and applies what was decided. */
  private void schedule(Revisions revisions, List<Job> left, Instant now) {
    var request =
        ScheduleRequest.newBuilder()
            .setNow(Timestamps.fromSeconds(now.getEpochSecond()))
            .setCluster(
                Cluster.newBuilder()
                    .addPools(
                        Requests.pool(
                            "v100", "V100", devices / DEVICES_PER_NODE, DEVICES_PER_NODE)))
            .setPolicyState(policyState);
    for (Job job : left) {
      ScheduleJob.Builder asked =
          ScheduleJob.newBuilder()
              .setJobId(job.name)
              .setProfile(source(revisions, job))
              .setRemainingSamples(job.samplesLeft)
              .setSubmitTime(Timestamps.fromSeconds(BEGIN.getEpochSecond()));
      if (job.holds != null) {
        asked.setCurrentAllocation(job.holds);
      }
      request.addJobs(asked);
    }
    var reply = client.schedule(request.build());
    policyState = reply.getPolicyState();
    for (int index = 0; index < reply.getAllocationsCount(); index++) {
      decisions++;
      apply(left.get(index), reply.getAllocations(index));
    }
  }

  private void apply(Job job, JobAllocation given) {
    switch (given.getAction()) {
      case SCHEDULE_ACTION_START, SCHEDULE_ACTION_CHANGE -> {
        job.holds =
            CurrentAllocation.newBuilder()
                .setPool(given.getPool())
                .addAllPlacement(given.getPlacementList())
                .build();
        job.runs = given;
      }
      case SCHEDULE_ACTION_KEEP -> job.runs = given;
      case SCHEDULE_ACTION_WAIT -> job.holds = null;
      default -> {}
    }
    String action = given.getAction().name().replace("SCHEDULE_ACTION_", "");
    if (job.holds == null) {
      out.printf("  %s: %s%n", job.name, action);
      return;
    }
    out.printf(
        "  %s: %s %d devices, %s samples/s, %s samples left%n",
        job.name,
        action,
        job.runs.getDevicesCount(),
        whole(job.runs.getSamplesPerSecond()),
        whole(job.samplesLeft));
  }

  /**
   * Tells what the job was measured to do (a little less than predicted), and gives the profile's
   * revision.
   */
  private long report(Job job, Instant end) {
    double measured = 0.95 * job.runs.getSamplesPerSecond();
    try (IngestWriter writer = client.ingest(PREFIX + job.name)) {
      writer.observe(
          Observations.newBuilder()
              .setConfigurations(ran(job.runs.getNodesCount(), job.runs.getDevicesCount()))
              .addStepsPerSecond(measured / BATCH_SAMPLES)
              .addMeasuredAtUnixSeconds(end.getEpochSecond())
              .build());
      IngestState committed = writer.commit();
      observations++;
      out.printf(
          "  %s: reported %s samples/s, revision %d%n",
          job.name, whole(measured), committed.getRevision());
      return committed.getRevision();
    }
  }

  private List<Job> unfinished() {
    return jobs.stream().filter(job -> job.samplesLeft > 0).toList();
  }

  /** Names a job's profile, at least as new as the watch has told. */
  private static ProfileSource source(Revisions revisions, Job job) {
    String name = PREFIX + job.name;
    return Requests.profile(name).toBuilder().setMinimumRevision(revisions.of(name)).build();
  }

  private static Configurations ran(int nodes, int workers) {
    ConfigurationSettings settings =
        ConfigurationSettings.newBuilder()
            .setDeviceName("V100")
            .setSyncMode(SyncMode.SYNC_MODE_ASYNC)
            .setBatchPerWorkerSamples(BATCH_SAMPLES)
            .build();
    return Requests.configurations(List.of(new ConfigurationRow(nodes, workers, settings)));
  }

  private static String whole(double value) {
    return String.format(Locale.ROOT, "%d", (long) (value + 0.5));
  }

  /** A job of the cluster, and what it holds. */
  private static final class Job {
    final String name;
    final double parameterBytes;
    final double computeSeconds;
    final double transferSeconds;
    double samplesLeft;

    /** Null = it does not run. */
    CurrentAllocation holds;

    /** What it was given last. */
    JobAllocation runs;

    Job(
        String name,
        double parameterBytes,
        double computeSeconds,
        double transferSeconds,
        double samplesLeft) {
      this.name = name;
      this.parameterBytes = parameterBytes;
      this.computeSeconds = computeSeconds;
      this.transferSeconds = transferSeconds;
      this.samplesLeft = samplesLeft;
    }
  }
}
