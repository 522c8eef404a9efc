package io.github.nodewise;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.github.nodewise.v1.FieldViolation;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A call that failed. {@link #reason()} is stable and meant to be switched on; {@link
 * #getMessage()} is for people.
 *
 * <p>{@link Status.Code#RESOURCE_EXHAUSTED} is never retried by the client: {@link #retryDelay()}
 * says when to come back.
 */
public final class NodewiseException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final String DOMAIN = "nodewise";
  private static final Metadata.Key<String> PUSHBACK =
      Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

  private final Status.Code code;
  private final String reason;
  private final String statusMessage;
  private final transient List<FieldViolation> violations;
  private final transient Map<String, String> metadata;
  private final Duration retryDelay;

  private NodewiseException(
      Status.Code code,
      String message,
      ErrorInfo info,
      List<FieldViolation> violations,
      Duration retryDelay,
      String hint,
      Throwable cause) {
    super(described(code, message, info.getReason(), violations, retryDelay, hint), cause);
    this.code = code;
    this.reason = info.getReason();
    this.statusMessage = message;
    this.violations = List.copyOf(violations);
    this.metadata = Map.copyOf(info.getMetadataMap());
    this.retryDelay = retryDelay;
  }

  /** The error that this client itself found. */
  static NodewiseException of(Status.Code code, String message, Throwable cause) {
    return new NodewiseException(
        code, message, ErrorInfo.getDefaultInstance(), List.of(), null, "", cause);
  }

  /** The error that a call ended with. */
  static NodewiseException of(
      Status status, Metadata trailers, String target, String method, Throwable cause) {
    Metadata sent = trailers == null ? new Metadata() : trailers;
    ErrorInfo info = ErrorInfo.getDefaultInstance();
    List<FieldViolation> violations = new ArrayList<>();
    Duration delay = pushback(sent.get(PUSHBACK));
    com.google.rpc.Status told = StatusProto.fromStatusAndTrailers(status, sent);
    for (Any detail : told.getDetailsList()) {
      try {
        if (detail.is(ErrorInfo.class)) {
          ErrorInfo found = detail.unpack(ErrorInfo.class);
          info = found.getDomain().equals(DOMAIN) ? found : info;
        } else if (detail.is(BadRequest.class)) {
          for (BadRequest.FieldViolation each :
              detail.unpack(BadRequest.class).getFieldViolationsList()) {
            violations.add(
                FieldViolation.newBuilder()
                    .setField(each.getField())
                    .setDescription(each.getDescription())
                    .build());
          }
        } else if (detail.is(RetryInfo.class)) {
          com.google.protobuf.Duration found = detail.unpack(RetryInfo.class).getRetryDelay();
          delay = Duration.ofSeconds(found.getSeconds(), found.getNanos());
        }
      } catch (InvalidProtocolBufferException unreadable) {
        continue; // the other details still say something
      }
    }
    String hint = told.getDetailsCount() > 0 ? "" : hint(status.getCode(), target, method);
    return new NodewiseException(
        status.getCode(), told.getMessage(), info, violations, delay, hint, cause);
  }

  /**
   * Status code.
   *
   * @return the code
   */
  public Status.Code code() {
    return code;
  }

  /**
   * Reason from the server's catalogue of errors, e.g. {@code PROFILE_NOT_FOUND}.
   *
   * @return the reason; empty where the server gave none
   */
  public String reason() {
    return reason;
  }

  /**
   * Text of the status, without what {@link #getMessage()} adds.
   *
   * @return the text, for people
   */
  public String statusMessage() {
    return statusMessage;
  }

  /**
   * Fields of the request that hold what they must not.
   *
   * @return the fields, each with what would be right
   */
  public List<FieldViolation> violations() {
    return violations == null ? List.of() : violations;
  }

  /**
   * The dynamic parts of the message, e.g. {@code missingFields}.
   *
   * @return the parts by name; names are in lowerCamelCase
   */
  public Map<String, String> metadata() {
    return metadata == null ? Map.of() : metadata;
  }

  /**
   * After which time the server asks to be asked again.
   *
   * @return the time; empty where the server did not say
   */
  public Optional<Duration> retryDelay() {
    return Optional.ofNullable(retryDelay);
  }

  private static String described(
      Status.Code code,
      String message,
      String reason,
      List<FieldViolation> violations,
      Duration retryDelay,
      String hint) {
    StringBuilder text = new StringBuilder(reason.isEmpty() ? code.name() : reason);
    text.append(": ").append(message).append(hint);
    for (FieldViolation each : violations) {
      if (!message.contains(each.getDescription())) {
        text.append("; ").append(each.getField()).append(": ").append(each.getDescription());
      }
    }
    if (retryDelay != null) {
      text.append("; try again in ").append(retryDelay.toMillis() / 1e3).append(" s");
    }
    return text.toString();
  }

  private static String hint(Status.Code code, String target, String method) {
    return switch (code) {
      case UNAVAILABLE ->
          " (no answer from a Nodewise server at "
              + target
              + ": check that it runs, that host and port are right and reachable from here, and that both sides agree"
              + " on TLS)";
      case DEADLINE_EXCEEDED ->
          " (" + method + " at " + target + " was not answered in time; allow more by withTimeout)";
      case UNIMPLEMENTED -> " (the server at " + target + " does not offer " + method + ")";
      case RESOURCE_EXHAUSTED ->
          " (where a message is too large: ask for less, or allow more by maxReceiveBytes)";
      default -> "";
    };
  }

  private static Duration pushback(String milliseconds) {
    try {
      long found = milliseconds == null ? -1 : Long.parseLong(milliseconds);
      return found < 0 ? null : Duration.ofMillis(found);
    } catch (NumberFormatException unreadable) {
      return null;
    }
  }
}
