package io.github.nodewise;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Timestamp;
import io.github.nodewise.v1.AppendProfileRequest;
import io.github.nodewise.v1.ConfigurationRange;
import io.github.nodewise.v1.ConfigurationSettings;
import io.github.nodewise.v1.Configurations;
import io.github.nodewise.v1.CountRange;
import io.github.nodewise.v1.FactsProto;
import io.github.nodewise.v1.FewestDevices;
import io.github.nodewise.v1.FieldFacts;
import io.github.nodewise.v1.HighestThroughput;
import io.github.nodewise.v1.Knee;
import io.github.nodewise.v1.LeastCost;
import io.github.nodewise.v1.LeastTime;
import io.github.nodewise.v1.NodePool;
import io.github.nodewise.v1.Objective;
import io.github.nodewise.v1.ProfileContent;
import io.github.nodewise.v1.ProfileSource;
import io.github.nodewise.v1.RetractEvidenceRequest;
import io.github.nodewise.v1.ScheduleRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.UUID;

/**
 * Shorter ways to say what requests hold. What is said here may be added to by {@code toBuilder}.
 */
public final class Requests {
  private Requests() {}

  // --- profiles --------------------------------------------------------------------------------

  /**
   * A stored profile, at its newest revision.
   *
   * @param profileId its name
   * @return what a request takes
   */
  public static ProfileSource profile(String profileId) {
    return ProfileSource.newBuilder().setProfileId(profileId).build();
  }

  /**
   * A stored profile as it was.
   *
   * @param profileId its name
   * @param revision exactly this one
   * @return what a request takes
   */
  public static ProfileSource profile(String profileId, long revision) {
    return ProfileSource.newBuilder().setProfileId(profileId).setRevision(revision).build();
  }

  /**
   * A profile that comes with the question; nothing is stored.
   *
   * @param content what is known of the job
   * @return what a request takes
   */
  public static ProfileSource profile(ProfileContent content) {
    return ProfileSource.newBuilder().setContent(content).build();
  }

  // --- ranges ----------------------------------------------------------------------------------

  /**
   * One configuration for each number of nodes.
   *
   * @param first least number of nodes
   * @param last greatest number of nodes
   * @return the range
   */
  public static ConfigurationRange nodeRange(int first, int last) {
    return ConfigurationRange.newBuilder().setNodes(counts(first, last)).build();
  }

  /**
   * One configuration for each number of workers; nodes follow from the placement rule.
   *
   * @param first least number of workers
   * @param last greatest number of workers
   * @return the range
   */
  public static ConfigurationRange workerRange(int first, int last) {
    return ConfigurationRange.newBuilder().setWorkers(counts(first, last)).build();
  }

  private static CountRange.Builder counts(int first, int last) {
    return CountRange.newBuilder().setFirst(first).setLast(last);
  }

  // --- objectives ------------------------------------------------------------------------------

  /** Highest throughput. */
  public static Objective highestThroughput() {
    return Objective.newBuilder()
        .setHighestThroughput(HighestThroughput.getDefaultInstance())
        .build();
  }

  /**
   * Where more nodes stop paying.
   *
   * @param share of the smallest configuration's throughput per node that each further node must
   *     bring, above 0, at most 1
   * @return the objective
   */
  public static Objective knee(double share) {
    return Objective.newBuilder().setKnee(Knee.newBuilder().setShare(share)).build();
  }

  /**
   * Least time to finish.
   *
   * @param maxNodes at most so many nodes, those of parameter servers included
   * @return the objective
   */
  public static Objective leastTime(int maxNodes) {
    return Objective.newBuilder()
        .setLeastTime(LeastTime.newBuilder().setMaxNodes(maxNodes))
        .build();
  }

  /**
   * Least cost within a deadline. The question needs offers and work.
   *
   * @param deadline from now
   * @return the objective
   */
  public static Objective leastCost(Duration deadline) {
    return Objective.newBuilder()
        .setLeastCost(LeastCost.newBuilder().setDeadlineSeconds(seconds(deadline)))
        .build();
  }

  /**
   * Fewest devices that finish in time.
   *
   * @param deadline from now
   * @return the objective
   */
  public static Objective fewestDevices(Duration deadline) {
    return Objective.newBuilder()
        .setFewestDevices(FewestDevices.newBuilder().setDeadlineSeconds(seconds(deadline)))
        .build();
  }

  private static double seconds(Duration time) {
    return time.toNanos() / 1e9;
  }

  // --- pools -----------------------------------------------------------------------------------

  /**
   * Alike nodes of a cluster with all their devices free.
   *
   * @param name unique in the cluster
   * @param deviceName accelerator, e.g. {@code V100}
   * @param nodes how many
   * @param devicesPerNode devices of each
   * @return the pool
   */
  public static NodePool pool(String name, String deviceName, int nodes, int devicesPerNode) {
    return NodePool.newBuilder()
        .setName(name)
        .setDeviceName(deviceName)
        .addAllAvailableDevices(Collections.nCopies(nodes, devicesPerNode))
        .build();
  }

  // --- configurations by rows ------------------------------------------------------------------

  /**
   * Configurations by rows; on the wire they are columns.
   *
   * @param rows the rows, in order
   * @return the columns
   * @throws IllegalArgumentException where only some rows state what a row cannot leave open
   */
  public static Configurations configurations(Collection<ConfigurationRow> rows) {
    Configurations.Builder columns = Configurations.newBuilder();
    for (FieldDescriptor setting : ConfigurationSettings.getDescriptor().getFields()) {
      List<Object> values = values(rows, setting);
      String column = facts(setting).getSameAs().replace("Configurations.", "");
      FieldDescriptor into = Configurations.getDescriptor().findFieldByName(column);
      if (values.isEmpty()) {
        continue;
      }
      if (column.endsWith("_names")) {
        List<Object> names = new ArrayList<>(new LinkedHashSet<>(values));
        FieldDescriptor indexes =
            Configurations.getDescriptor().findFieldByName(column.replace("_names", "_indexes"));
        columns.setField(into, names);
        columns.setField(indexes, values.stream().map(names::indexOf).toList());
      } else {
        columns.setField(into, values);
      }
    }
    boolean nodes = rows.stream().anyMatch(row -> row.nodes() != 0);
    boolean workers = rows.stream().anyMatch(row -> row.workers() != 0);
    boolean placed = rows.stream().anyMatch(row -> !row.placement().isEmpty());
    if (placed) {
      columns.addPlacementOffsets(0);
    }
    for (ConfigurationRow row : rows) {
      if (nodes) {
        columns.addNodes(row.nodes());
      }
      if (workers) {
        columns.addWorkers(row.workers());
      }
      if (placed) {
        columns.addAllPlacementWorkers(row.placement());
        columns.addPlacementOffsets(columns.getPlacementWorkersCount());
      }
    }
    return columns.build();
  }

  /** What the rows say of a setting; empty where no row says anything. */
  private static List<Object> values(Collection<ConfigurationRow> rows, FieldDescriptor setting) {
    List<Object> values = new ArrayList<>(rows.size());
    boolean stated = false;
    for (ConfigurationRow row : rows) {
      boolean states =
          setting.hasPresence()
              ? row.settings().hasField(setting)
              : !row.settings().getField(setting).equals(setting.getDefaultValue());
      stated |= states;
      values.add(states ? row.settings().getField(setting) : null);
    }
    if (stated) {
      values.replaceAll(value -> value == null ? open(setting) : value);
    }
    return stated ? values : List.of();
  }

  /** What a row of a column holds that states nothing. */
  private static Object open(FieldDescriptor setting) {
    FieldDescriptor column =
        Configurations.getDescriptor()
            .findFieldByName(facts(setting).getSameAs().replace("Configurations.", ""));
    FieldFacts facts = facts(column);
    return switch (setting.getJavaType()) {
      case ENUM, STRING -> setting.getDefaultValue();
      case BOOLEAN -> false;
      case INT, DOUBLE -> {
        if (!facts.hasDefaultValue()) {
          throw new IllegalArgumentException(
              "some rows state " + setting.getName() + " and others do not; state it in every row");
        }
        double value = facts.getDefaultValue();
        yield setting.getJavaType() == FieldDescriptor.JavaType.INT ? (Object) (int) value : value;
      }
      default -> throw new IllegalStateException(setting.getFullName());
    };
  }

  private static FieldFacts facts(FieldDescriptor field) {
    return field.getOptions().getExtension(FactsProto.facts);
  }

  // --- what the client fills in ----------------------------------------------------------------

  static AppendProfileRequest withId(AppendProfileRequest request) {
    return request.getRequestId().isEmpty()
        ? request.toBuilder().setRequestId(UUID.randomUUID().toString()).build()
        : request;
  }

  static RetractEvidenceRequest withId(RetractEvidenceRequest request) {
    return request.getRequestId().isEmpty()
        ? request.toBuilder().setRequestId(UUID.randomUUID().toString()).build()
        : request;
  }

  static ScheduleRequest withNow(ScheduleRequest request) {
    Instant now = Instant.now();
    return request.hasNow()
        ? request
        : request.toBuilder()
            .setNow(Timestamp.newBuilder().setSeconds(now.getEpochSecond()).setNanos(now.getNano()))
            .build();
  }
}
