package io.github.nodewise;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nodewise.v1.ListProfilesRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import scheduler.Scheduler;

class ExamplesTest {
  @Test
  void theReadmeShowsTheExampleThatRuns() throws IOException {
    String readme = Files.readString(Path.of("README.md"));
    assertTrue(
        readme.contains(
            "```java\n" + Files.readString(Path.of("examples/Predict.java")) + "```\n"));
  }

  @Test
  void theSchedulerDoesAsInEveryLanguage() throws IOException {
    String target = System.getenv("NODEWISE_SERVER");
    assumeTrue(target != null, "NODEWISE_SERVER is not set: no server to schedule on");
    try (NodewiseClient client = NodewiseClient.connect(target)) {
      var mine = ListProfilesRequest.newBuilder().setNamePrefix(Scheduler.PREFIX).build();
      boolean ranBefore = client.listProfiles(mine).iterator().hasNext();
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      Scheduler.run(new PrintStream(out, true, StandardCharsets.UTF_8), target, 8, 4);
      String told = out.toString(StandardCharsets.UTF_8);
      assertTrue(told.contains("\ndone: 4 rounds, "), told);
      Path page = Path.of("../examples.md");
      assumeTrue(
          !ranBefore && Files.exists(page),
          "not compared: it has run here before, or the page is not here");
      assertTrue(Files.readString(page).contains("```\n" + told + "```\n"), told);
    }
  }

  @Test
  void argumentsThatCannotBeAreTold() {
    String told =
        assertThrows(IllegalArgumentException.class, () -> Scheduler.run(System.out, "a:1", 7, 4))
            .getMessage();
    assertEquals("DEVICES is 7; nodes have 4 devices each, so give a multiple of that", told);
  }
}
