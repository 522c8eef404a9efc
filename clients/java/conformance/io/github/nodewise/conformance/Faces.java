package io.github.nodewise.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.github.nodewise.IngestWriter;
import io.github.nodewise.JobRows;
import io.github.nodewise.LongAnswer;
import io.github.nodewise.NodewiseClient;
import io.github.nodewise.Pages;
import io.github.nodewise.PredictionRow;
import io.github.nodewise.PredictionRows;
import io.github.nodewise.ReplyStream;
import io.github.nodewise.ResumePolicy;
import io.github.nodewise.v1.BatchPredictResponse;
import io.github.nodewise.v1.IngestState;
import io.github.nodewise.v1.PredictResponse;
import io.github.nodewise.v1.ProfileBatch;
import io.github.nodewise.v1.RowStatus;
import io.github.nodewise.v1.StreamPredictRequest;
import io.github.nodewise.v1.WatchProfilesRequest;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;
import java.util.UUID;
import java.util.function.Consumer;

/** The faces of PROTOCOL.md: what a line asks of a client, and what came of it. */
final class Faces {
  final JsonArray replies = new JsonArray();
  final JsonArray rows = new JsonArray();
  private final NodewiseClient client;
  private final JsonObject line;

  Faces(NodewiseClient client, JsonObject line) {
    this.client = client;
    this.line = line;
  }

  void ask() throws ReflectiveOperationException {
    switch (line.get("face").getAsString()) {
      case "call" -> call();
      case "rows" -> view((Message) called());
      case "pages" -> ((Pages<?, ?>) called()).forEach(item -> told((Message) item));
      case "progress" -> told(last(((LongAnswer<?, ?>) called()).messages()));
      case "stream" -> stream();
      case "watch" ->
          read(client.watchProfiles(read(request(0), WatchProfilesRequest.newBuilder()).build()));
      case "ingest" -> ingest(line.getAsJsonObject("ingest"));
      default -> throw new IllegalArgumentException("there is no face " + line.get("face"));
    }
  }

  /** A unary call; of a listing the first page. */
  private void call() throws ReflectiveOperationException {
    Object answer = called();
    told(answer instanceof Pages<?, ?> pages ? pages.pages().iterator().next() : (Message) answer);
  }

  /** Calls the client's method of that name. */
  private Object called() throws ReflectiveOperationException {
    String name = line.get("method").getAsString().replaceFirst(".*/", "");
    String ours = Character.toLowerCase(name.charAt(0)) + name.substring(1);
    Method method =
        Arrays.stream(NodewiseClient.class.getMethods())
            .filter(each -> each.getName().equals(ours))
            .findFirst()
            .orElseThrow(() -> new NoSuchMethodException("the client has no method " + ours));
    Message.Builder builder =
        (Message.Builder) method.getParameterTypes()[0].getMethod("newBuilder").invoke(null);
    Message request = read(request(0), builder).build();
    try {
      return method.getParameterCount() == 1
          ? method.invoke(client, request)
          : method.invoke(client, request, (Consumer<?>) null);
    } catch (InvocationTargetException thrown) {
      if (thrown.getCause() instanceof RuntimeException error) {
        throw error;
      }
      throw thrown;
    }
  }

  private void stream() {
    List<StreamPredictRequest> questions = new ArrayList<>();
    for (JsonElement each : line.getAsJsonArray("requests")) {
      questions.add(read(each, StreamPredictRequest.newBuilder()).build());
    }
    read(client.streamPredict(questions));
  }

  private void read(ReplyStream<? extends Message> stream) {
    int most = line.has("cancel_after_replies") ? line.get("cancel_after_replies").getAsInt() : -1;
    try (stream) {
      while (stream.hasNext()) {
        told(stream.next());
        if (replies.size() == most) {
          return;
        }
      }
    }
  }

  private void ingest(JsonObject asked) {
    JsonElement named = asked.get("session_id");
    String session = named == null ? UUID.randomUUID().toString() : named.getAsString();
    try (IngestWriter writer =
        client.ingest(asked.get("profile_id").getAsString(), session, ResumePolicy.DEFAULT)) {
      IngestState state = writer.state();
      for (JsonElement batch : asked.getAsJsonArray("batches")) {
        writer.add(read(batch, ProfileBatch.newBuilder()).build());
        state = writer.flush();
      }
      boolean commits = asked.has("commit") && asked.get("commit").getAsBoolean();
      if (commits) {
        state = writer.commit();
      }
      JsonObject said = new JsonObject();
      said.addProperty("durable", state.getDurableSequenceNumber());
      said.addProperty("revision", commits ? state.getRevision() : 0);
      replies.add(said);
    }
  }

  private void view(Message reply) {
    if (reply instanceof PredictResponse answer) {
      view(PredictionRows.of(answer), -1);
    } else if (reply instanceof BatchPredictResponse answer) {
      if (answer.getOutcomesCount() == 0) {
        view(PredictionRows.of(answer.getPredictions()), -1);
      }
      int number = 0;
      for (JobRows job : JobRows.of(answer)) {
        view(job, number++);
      }
    }
  }

  private void view(JobRows job, int number) {
    if (job.problem().isEmpty()) {
      view(job.rows(), number);
      return;
    }
    JsonObject error = new JsonObject();
    error.addProperty("reason", job.problem().get().getReason());
    error.addProperty("message", job.problem().get().getMessage());
    JsonObject row = new JsonObject();
    row.addProperty("job", number);
    row.add("error", error);
    rows.add(row);
  }

  private void view(List<PredictionRow> seen, int job) {
    for (PredictionRow each : seen) {
      JsonObject row = new JsonObject();
      if (job >= 0) {
        row.addProperty("job", job);
      }
      row.addProperty("nodes", each.nodes() == 0 ? null : each.nodes());
      row.addProperty("workers", each.workers() == 0 ? null : each.workers());
      if (each.status() == RowStatus.UNRECOGNIZED) {
        row.addProperty("status", each.statusNumber());
      } else {
        row.addProperty("status", each.status().name());
      }
      figure(row, "step_seconds", each.stepSeconds());
      figure(row, "samples_per_second", each.samplesPerSecond());
      figure(row, "lower_samples_per_second", each.lowerSamplesPerSecond());
      figure(row, "upper_samples_per_second", each.upperSamplesPerSecond());
      figure(row, "memory_bytes", each.memoryBytes());
      row.addProperty("bottleneck", each.bottleneck().orElse(null));
      row.addProperty("reason", each.refusal().map(problem -> problem.getReason()).orElse(null));
      rows.add(row);
    }
  }

  private static void figure(JsonObject row, String name, OptionalDouble figure) {
    if (figure.isPresent()) {
      row.addProperty(name, figure.getAsDouble());
    } else {
      row.add(name, JsonNull.INSTANCE);
    }
  }

  private void told(Message message) {
    try {
      replies.add(
          JsonParser.parseString(JsonFormat.printer().preservingProtoFieldNames().print(message)));
    } catch (com.google.protobuf.InvalidProtocolBufferException fault) {
      throw new IllegalStateException(fault);
    }
  }

  private JsonElement request(int number) {
    return line.getAsJsonArray("requests").get(number);
  }

  private static <B extends Message.Builder> B read(JsonElement from, B into) {
    try {
      JsonFormat.parser().merge(from.toString(), into);
      return into;
    } catch (com.google.protobuf.InvalidProtocolBufferException fault) {
      throw new IllegalArgumentException(fault);
    }
  }

  private static Message last(List<?> messages) {
    return (Message) messages.get(messages.size() - 1);
  }
}
