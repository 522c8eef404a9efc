package io.github.nodewise;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class OptionsTest {
  @Test
  void aTargetIsNeeded() {
    assertTold("host:port", () -> NodewiseClient.builder(" "));
  }

  @Test
  void aTokenDoesNotTravelAsPlainText() {
    assertTold(
        "plain text", () -> NodewiseClient.builder("nodewise.example:50551").token("nw_x").build());
    for (String target :
        new String[] {"127.0.0.1:1", "localhost:1", "[::1]:1", "dns:///localhost:1"}) {
      NodewiseClient.builder(target).token("nw_x").build().close();
    }
    NodewiseClient.builder("nodewise.example:50551").token("nw_x").tls().build().close();
  }

  @Test
  void aCertificateNeedsTls() {
    byte[] pem = "none".getBytes(StandardCharsets.US_ASCII);
    assertTold("tls()", () -> NodewiseClient.builder("a:1").clientCertificate(pem, pem).build());
    assertThrows(
        IllegalArgumentException.class, () -> NodewiseClient.builder("a:1").tls(pem).build());
  }

  @Test
  void everyCallHasATime() {
    assertTold("above 0", () -> NodewiseClient.builder("a:1").defaultTimeout(Duration.ZERO));
    try (NodewiseClient client = NodewiseClient.connect("127.0.0.1:1")) {
      assertTold("above 0", () -> client.withTimeout(Duration.ofSeconds(-1)));
    }
  }

  @Test
  void theSharedFileSaysHowLongAndWhatIsTriedAgain() {
    var predict = io.github.nodewise.v1.PredictionServiceGrpc.getPredictMethod();
    assertEquals(4, ServiceConfig.SHARED.policy(predict).maxAttempts());
    assertTrue(ServiceConfig.SHARED.timeout(predict).compareTo(Duration.ofSeconds(60)) <= 0);
    assertEquals(
        null,
        ServiceConfig.SHARED.policy(io.github.nodewise.v1beta1.AdminServiceGrpc.getReloadMethod()));
  }

  private static void assertTold(String words, org.junit.jupiter.api.function.Executable what) {
    String told = assertThrows(IllegalArgumentException.class, what).getMessage();
    assertTrue(told.contains(words), told);
  }
}
