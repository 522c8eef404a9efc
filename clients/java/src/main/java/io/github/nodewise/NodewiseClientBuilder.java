package io.github.nodewise;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.ManagedChannelRegistry;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.TlsChannelCredentials;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** Options of a {@link NodewiseClient}. */
public final class NodewiseClientBuilder {
  private static final int KEPT_FOR_RETRY_BYTES = 64 << 20;
  private static final Pattern LOOPBACK =
      Pattern.compile(
          "(?:[a-z]+:/*)?(?:localhost|127(?:\\.\\d+){3}|\\[::1\\])(?::\\d+)?|unix(?:-abstract)?:.*");
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final String target;
  private Duration defaultTimeout;
  private Supplier<String> token;
  private boolean tls;
  private byte[] roots;
  private byte[] certificate;
  private byte[] key;
  private String userAgent = "nodewise-java/" + ServiceConfig.version();
  private boolean retry = true;
  private int maxReceiveBytes = 4 << 20;

  NodewiseClientBuilder(String target) {
    if (target == null || target.isBlank()) {
      throw new IllegalArgumentException("target is empty; give the server as \"host:port\"");
    }
    this.target = target;
  }

  /**
   * Deadline of unary calls that are given none of their own.
   *
   * @param timeout how long such a call may take, retries included; above 0
   * @return these options
   */
  public NodewiseClientBuilder defaultTimeout(Duration timeout) {
    defaultTimeout = positive(timeout);
    return this;
  }

  /**
   * A token that is sent with every call. Without TLS it is refused beyond loopback, where others
   * could read it.
   *
   * @param bearerToken the token
   * @return these options
   */
  public NodewiseClientBuilder token(String bearerToken) {
    return token(() -> bearerToken);
  }

  /**
   * The same, asked for at every call.
   *
   * @param bearerToken gives the token as it is by then
   * @return these options
   */
  public NodewiseClientBuilder token(Supplier<String> bearerToken) {
    token = bearerToken;
    return this;
  }

  /**
   * TLS with the root certificates of the Java runtime.
   *
   * @return these options
   */
  public NodewiseClientBuilder tls() {
    tls = true;
    return this;
  }

  /**
   * TLS with these root certificates.
   *
   * @param rootsPem the certificates, as PEM
   * @return these options
   */
  public NodewiseClientBuilder tls(byte[] rootsPem) {
    roots = rootsPem.clone();
    return tls();
  }

  /**
   * The client's own certificate, where the server asks for one. Needs TLS.
   *
   * @param certificatePem the certificate with its chain, as PEM
   * @param keyPem its key, as PEM (PKCS #8)
   * @return these options
   */
  public NodewiseClientBuilder clientCertificate(byte[] certificatePem, byte[] keyPem) {
    certificate = certificatePem.clone();
    key = keyPem.clone();
    return this;
  }

  /**
   * Whom the client says that it is; gRPC's own name follows.
   *
   * @param name in place of {@code nodewise-java/VERSION}
   * @return these options
   */
  public NodewiseClientBuilder userAgent(String name) {
    userAgent = name;
    return this;
  }

  /**
   * Whether calls that are harmless to repeat are tried again where the server is not there or
   * going away.
   *
   * @param on true unless stated
   * @return these options
   */
  public NodewiseClientBuilder retry(boolean on) {
    retry = on;
    return this;
  }

  /**
   * Largest message that is accepted from the server.
   *
   * @param bytes 4 MiB unless stated
   * @return these options
   */
  public NodewiseClientBuilder maxReceiveBytes(int bytes) {
    maxReceiveBytes = bytes;
    return this;
  }

  /**
   * Makes the client. Nothing is sent before the first call.
   *
   * @return the client, to be closed
   * @throws IllegalArgumentException where options contradict each other, or hold no certificate
   */
  public NodewiseClient build() {
    if (token != null && !tls && !LOOPBACK.matcher(target).matches()) {
      throw new IllegalArgumentException(
          "a token would go to " + target + " as plain text; use tls(), or a target on loopback");
    }
    if (certificate != null && !tls) {
      throw new IllegalArgumentException("clientCertificate needs tls()");
    }
    ManagedChannelBuilder<?> builder =
        channel().userAgent(userAgent).maxInboundMessageSize(maxReceiveBytes);
    if (retry) {
      // By itself gRPC does not retry what is larger than 1 MiB.
      builder
          .enableRetry()
          .perRpcBufferLimit(KEPT_FOR_RETRY_BYTES)
          .retryBufferSize(KEPT_FOR_RETRY_BYTES)
          .defaultServiceConfig(ServiceConfig.SHARED.retries());
    } else {
      builder.disableRetry();
    }
    ManagedChannel managed = builder.build();
    Channel channel =
        token == null ? managed : ClientInterceptors.intercept(managed, new Authorization(token));
    Calls calls = new Calls(managed, channel, target, retry, defaultTimeout, null);
    calls.seekServer();
    return new NodewiseClient(calls);
  }

  private ManagedChannelBuilder<?> channel() {
    if (!tls) {
      return Grpc.newChannelBuilder(target, InsecureChannelCredentials.create());
    }
    try {
      return Grpc.newChannelBuilder(target, tlsCredentials());
    } catch (ManagedChannelRegistry.ProviderNotFoundException unreadable) { // of what is no PEM
      throw new IllegalArgumentException("certificate or key cannot be read", unreadable);
    }
  }

  private ChannelCredentials tlsCredentials() {
    TlsChannelCredentials.Builder credentials = TlsChannelCredentials.newBuilder();
    try {
      if (roots != null) {
        credentials.trustManager(new ByteArrayInputStream(roots));
      }
      if (certificate != null) {
        credentials.keyManager(
            new ByteArrayInputStream(certificate), new ByteArrayInputStream(key));
      }
    } catch (IOException unreadable) {
      throw new IllegalArgumentException("certificate or key cannot be read", unreadable);
    }
    return credentials.build();
  }

  static Duration positive(Duration timeout) {
    if (timeout == null || timeout.isZero() || timeout.isNegative()) {
      throw new IllegalArgumentException(
          "timeout is " + timeout + "; every call has a deadline, so give a time above 0");
    }
    return timeout;
  }

  private record Authorization(Supplier<String> token) implements ClientInterceptor {
    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> listener, Metadata headers) {
          headers.put(AUTHORIZATION, "Bearer " + token.get());
          super.start(listener, headers);
        }
      };
    }
  }
}
