package io.github.nodewise;

import com.google.protobuf.Message;
import io.github.nodewise.v1.AppendProfileRequest;
import io.github.nodewise.v1.AppendProfileResponse;
import io.github.nodewise.v1.BatchPredictRequest;
import io.github.nodewise.v1.BatchPredictResponse;
import io.github.nodewise.v1.DeleteProfileRequest;
import io.github.nodewise.v1.DeleteProfileResponse;
import io.github.nodewise.v1.Device;
import io.github.nodewise.v1.Estimator;
import io.github.nodewise.v1.GetProfileRequest;
import io.github.nodewise.v1.GetProfileResponse;
import io.github.nodewise.v1.IngestBatchRequest;
import io.github.nodewise.v1.IngestBatchResponse;
import io.github.nodewise.v1.ListDevicesRequest;
import io.github.nodewise.v1.ListDevicesResponse;
import io.github.nodewise.v1.ListEstimatorsRequest;
import io.github.nodewise.v1.ListEstimatorsResponse;
import io.github.nodewise.v1.ListPluginsRequest;
import io.github.nodewise.v1.ListPluginsResponse;
import io.github.nodewise.v1.ListPoliciesRequest;
import io.github.nodewise.v1.ListPoliciesResponse;
import io.github.nodewise.v1.ListProfilesRequest;
import io.github.nodewise.v1.ListProfilesResponse;
import io.github.nodewise.v1.ListUsageRequest;
import io.github.nodewise.v1.ListUsageResponse;
import io.github.nodewise.v1.NamespaceUsage;
import io.github.nodewise.v1.Plugin;
import io.github.nodewise.v1.PredictRequest;
import io.github.nodewise.v1.PredictResponse;
import io.github.nodewise.v1.PredictionServiceGrpc;
import io.github.nodewise.v1.Profile;
import io.github.nodewise.v1.ProfileServiceGrpc;
import io.github.nodewise.v1.RetractEvidenceRequest;
import io.github.nodewise.v1.RetractEvidenceResponse;
import io.github.nodewise.v1.ScheduleRequest;
import io.github.nodewise.v1.ScheduleResponse;
import io.github.nodewise.v1.ScheduleServiceGrpc;
import io.github.nodewise.v1.StreamPredictRequest;
import io.github.nodewise.v1.StreamPredictResponse;
import io.github.nodewise.v1.SuggestMeasurementsRequest;
import io.github.nodewise.v1.SuggestMeasurementsResponse;
import io.github.nodewise.v1.UndeleteProfileRequest;
import io.github.nodewise.v1.UndeleteProfileResponse;
import io.github.nodewise.v1.WatchProfilesRequest;
import io.github.nodewise.v1.WatchProfilesResponse;
import io.github.nodewise.v1beta1.AdminServiceGrpc;
import io.github.nodewise.v1beta1.BacktestProgress;
import io.github.nodewise.v1beta1.BacktestRequest;
import io.github.nodewise.v1beta1.BacktestResponse;
import io.github.nodewise.v1beta1.BacktestResult;
import io.github.nodewise.v1beta1.CompletionServiceGrpc;
import io.github.nodewise.v1beta1.CreateTokenRequest;
import io.github.nodewise.v1beta1.CreateTokenResponse;
import io.github.nodewise.v1beta1.DiagnoseRequest;
import io.github.nodewise.v1beta1.DiagnoseResponse;
import io.github.nodewise.v1beta1.DiagnosisProgress;
import io.github.nodewise.v1beta1.DiagnosisResult;
import io.github.nodewise.v1beta1.DiagnosisServiceGrpc;
import io.github.nodewise.v1beta1.EstimateCompletionRequest;
import io.github.nodewise.v1beta1.EstimateCompletionResponse;
import io.github.nodewise.v1beta1.EstimateRunRequest;
import io.github.nodewise.v1beta1.EstimateRunResponse;
import io.github.nodewise.v1beta1.Generation;
import io.github.nodewise.v1beta1.LearnedPriors;
import io.github.nodewise.v1beta1.ListGenerationsRequest;
import io.github.nodewise.v1beta1.ListGenerationsResponse;
import io.github.nodewise.v1beta1.ListPluginStatesRequest;
import io.github.nodewise.v1beta1.ListPluginStatesResponse;
import io.github.nodewise.v1beta1.ListPriorsRequest;
import io.github.nodewise.v1beta1.ListPriorsResponse;
import io.github.nodewise.v1beta1.ListTokensRequest;
import io.github.nodewise.v1beta1.ListTokensResponse;
import io.github.nodewise.v1beta1.PlanProgress;
import io.github.nodewise.v1beta1.PlanRequest;
import io.github.nodewise.v1beta1.PlanResponse;
import io.github.nodewise.v1beta1.PlanResult;
import io.github.nodewise.v1beta1.PredictSharingRequest;
import io.github.nodewise.v1beta1.PredictSharingResponse;
import io.github.nodewise.v1beta1.PromoteRequest;
import io.github.nodewise.v1beta1.PromoteResponse;
import io.github.nodewise.v1beta1.ReloadRequest;
import io.github.nodewise.v1beta1.ReloadResponse;
import io.github.nodewise.v1beta1.ReplayRequest;
import io.github.nodewise.v1beta1.ReplayResponse;
import io.github.nodewise.v1beta1.ReplayResult;
import io.github.nodewise.v1beta1.ReportStepsRequest;
import io.github.nodewise.v1beta1.ReportStepsResponse;
import io.github.nodewise.v1beta1.RevokeTokenRequest;
import io.github.nodewise.v1beta1.RevokeTokenResponse;
import io.github.nodewise.v1beta1.RollbackRequest;
import io.github.nodewise.v1beta1.RollbackResponse;
import io.github.nodewise.v1beta1.SetCanaryRequest;
import io.github.nodewise.v1beta1.SetCanaryResponse;
import io.github.nodewise.v1beta1.SetPriorRequest;
import io.github.nodewise.v1beta1.SetPriorResponse;
import io.github.nodewise.v1beta1.SharingServiceGrpc;
import io.github.nodewise.v1beta1.SimulateRequest;
import io.github.nodewise.v1beta1.SimulateResponse;
import io.github.nodewise.v1beta1.SimulationProgress;
import io.github.nodewise.v1beta1.SimulationResult;
import io.github.nodewise.v1beta1.Token;
import io.grpc.Channel;
import io.grpc.MethodDescriptor;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A connection to a Nodewise server, for callers that wait; {@link #async()} is the same for those
 * that do not. Requests and replies are the contract's own messages: what its comments say of units
 * and absence holds here. Threads may share a client.
 *
 * <p>A call that fails throws {@link NodewiseException}. Every call has a deadline: that of {@link
 * #withTimeout}, else the builder's, else that of the contract, 10 s, or 60 s where much may be
 * computed or stored, and 600 s of long calls and streams; a watch has none. Calls that are
 * harmless to repeat are retried, up to four times within their deadline, where the server is not
 * there or going away. An interrupt ends the call of the thread.
 */
public final class NodewiseClient implements AutoCloseable {
  private final Calls calls;
  private final NodewiseAsyncClient async;

  NodewiseClient(Calls calls) {
    this.calls = calls;
    this.async = new NodewiseAsyncClient(calls);
  }

  /**
   * A client with the default options. Nothing is sent before the first call.
   *
   * @param target {@code host:port}, or any name that gRPC resolves
   * @return the client, in plain text and without a token
   */
  public static NodewiseClient connect(String target) {
    return builder(target).build();
  }

  /**
   * Options of a client.
   *
   * @param target {@code host:port}, or any name that gRPC resolves
   * @return the options, to be built
   */
  public static NodewiseClientBuilder builder(String target) {
    return new NodewiseClientBuilder(target);
  }

  /**
   * The same client with another deadline, of streams too.
   *
   * @param timeout how long each call may take, retries included; above 0
   * @return a view of this client; it need not be closed
   */
  public NodewiseClient withTimeout(Duration timeout) {
    return new NodewiseClient(calls.withTimeout(NodewiseClientBuilder.positive(timeout)));
  }

  /** The same calls as futures. */
  public NodewiseAsyncClient async() {
    return async;
  }

  /** The channel with this client's credentials and retries, for stubs of other services. */
  public Channel channel() {
    return calls.channel;
  }

  /** Ends every call and the connection. */
  @Override
  public void close() {
    calls.managed.shutdownNow();
    try {
      calls.managed.awaitTermination(5, TimeUnit.SECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * A writer of a new session; see {@link IngestWriter}.
   *
   * @param profileId the profile that it adds to, created if it does not exist
   * @return the writer; the session is open
   */
  public IngestWriter ingest(String profileId) {
    return ingest(profileId, UUID.randomUUID().toString(), ResumePolicy.DEFAULT);
  }

  /**
   * A writer that goes on with a session, of an earlier process too.
   *
   * @param profileId the profile that it adds to
   * @param sessionId the session; one writer at a time may use it
   * @param policy how long a server that went away is waited for
   * @return the writer; the session is open
   */
  public IngestWriter ingest(String profileId, String sessionId, ResumePolicy policy) {
    return new IngestWriter(calls, profileId, sessionId, policy);
  }

  // --- streams ---------------------------------------------------------------------------------

  /**
   * Asks over one stream: requests are read, in a thread of their own, as the server takes them.
   *
   * @param requests the questions; replies carry their question_id
   * @return the answers as they are ready; a problem of one question ends that question alone
   */
  public ReplyStream<StreamPredictResponse> streamPredict(Iterable<StreamPredictRequest> requests) {
    return new ReplyStream<>((sink, onceAwaited) -> async.streamPredict(requests, sink));
  }

  /**
   * Watches profiles: first all of them, then every change. If the connection is lost, the watch
   * starts again while the next message is waited for: it reports all profiles and caught_up again.
   *
   * @param request which profiles
   * @return the reports, until it is closed
   */
  public ReplyStream<WatchProfilesResponse> watchProfiles(WatchProfilesRequest request) {
    return new ReplyStream<>(
        (sink, onceAwaited) ->
            calls.watch(
                ProfileServiceGrpc.getWatchProfilesMethod(),
                request,
                ResumePolicy.DEFAULT,
                sink,
                onceAwaited));
  }

  // --- predictions -----------------------------------------------------------------------------

  /** Predicts one job on many configurations; read the rows by {@link PredictionRows}. */
  public PredictResponse predict(PredictRequest request) {
    return calls.blocking(PredictionServiceGrpc.getPredictMethod(), request);
  }

  /** Predicts many jobs; read them by {@link JobRows}. A job that cannot be answered tells why. */
  public BatchPredictResponse batchPredict(BatchPredictRequest request) {
    return calls.blocking(PredictionServiceGrpc.getBatchPredictMethod(), request);
  }

  /** Suggests what to measure next, best first, with the cost in node-seconds. */
  public SuggestMeasurementsResponse suggestMeasurements(SuggestMeasurementsRequest request) {
    return calls.blocking(PredictionServiceGrpc.getSuggestMeasurementsMethod(), request);
  }

  // --- profiles --------------------------------------------------------------------------------

  /** Appends and commits. An empty request_id is filled in: no retry doubles anything. */
  public AppendProfileResponse appendProfile(AppendProfileRequest request) {
    return calls.blocking(ProfileServiceGrpc.getAppendProfileMethod(), Requests.withId(request));
  }

  /** Adds one numbered batch to a session, or asks how far it is. */
  public IngestBatchResponse ingestBatch(IngestBatchRequest request) {
    return calls.blocking(ProfileServiceGrpc.getIngestBatchMethod(), request);
  }

  /** Takes evidence out; it stays in the history. An empty request_id is filled in. */
  public RetractEvidenceResponse retractEvidence(RetractEvidenceRequest request) {
    return calls.blocking(ProfileServiceGrpc.getRetractEvidenceMethod(), Requests.withId(request));
  }

  /** Reads one profile; of its observations one page, up to 20,000. */
  public GetProfileResponse getProfile(GetProfileRequest request) {
    return calls.blocking(ProfileServiceGrpc.getGetProfileMethod(), request);
  }

  /** Deletes a profile of this etag ("*" = any); until its purge time it can return. */
  public DeleteProfileResponse deleteProfile(DeleteProfileRequest request) {
    return calls.blocking(ProfileServiceGrpc.getDeleteProfileMethod(), request);
  }

  /** Brings a deleted profile back as it was. */
  public UndeleteProfileResponse undeleteProfile(UndeleteProfileRequest request) {
    return calls.blocking(ProfileServiceGrpc.getUndeleteProfileMethod(), request);
  }

  // --- schedules -------------------------------------------------------------------------------

  /** Shares a cluster among jobs; pure. An absent now is the time of the call. */
  public ScheduleResponse schedule(ScheduleRequest request) {
    return calls.blocking(ScheduleServiceGrpc.getScheduleMethod(), Requests.withNow(request));
  }

  // --- completion and sharing ------------------------------------------------------------------

  /** Estimates time, cost and risk on offers of machines that can be taken away. */
  public EstimateCompletionResponse estimateCompletion(EstimateCompletionRequest request) {
    return calls.blocking(CompletionServiceGrpc.getEstimateCompletionMethod(), request);
  }

  /** Estimates a run before its start: memory, time, cost, energy and emissions, with failures. */
  public EstimateRunResponse estimateRun(EstimateRunRequest request) {
    return calls.blocking(CompletionServiceGrpc.getEstimateRunMethod(), request);
  }

  /** Sends times of steps of a job that runs; the reply says what recorders are asked to record. */
  public ReportStepsResponse reportSteps(ReportStepsRequest request) {
    return calls.blocking(DiagnosisServiceGrpc.getReportStepsMethod(), request);
  }

  /** Predicts what jobs keep of their solo speed on one device, set by set. */
  public PredictSharingResponse predictSharing(PredictSharingRequest request) {
    return calls.blocking(SharingServiceGrpc.getPredictSharingMethod(), request);
  }

  // --- administration --------------------------------------------------------------------------

  /** Lets another generation of plugins take over, once it was tried. */
  public ReloadResponse reload(ReloadRequest request) {
    return calls.blocking(AdminServiceGrpc.getReloadMethod(), request);
  }

  /** Lets a generation answer a share of the jobs, once it was tried. */
  public SetCanaryResponse setCanary(SetCanaryRequest request) {
    return calls.blocking(AdminServiceGrpc.getSetCanaryMethod(), request);
  }

  /** Lets the canary answer all jobs. */
  public PromoteResponse promote(PromoteRequest request) {
    return calls.blocking(AdminServiceGrpc.getPromoteMethod(), request);
  }

  /** Ends the canary; without one, returns to the stable generation before. */
  public RollbackResponse rollback(RollbackRequest request) {
    return calls.blocking(AdminServiceGrpc.getRollbackMethod(), request);
  }

  /** Tells how the plugins of every track fare in the process that answers. */
  public ListPluginStatesResponse listPluginStates(ListPluginStatesRequest request) {
    return calls.blocking(AdminServiceGrpc.getListPluginStatesMethod(), request);
  }

  /** Makes a bearer token; its text is told here alone. */
  public CreateTokenResponse createToken(CreateTokenRequest request) {
    return calls.blocking(AdminServiceGrpc.getCreateTokenMethod(), request);
  }

  /** Ends a token for good. */
  public RevokeTokenResponse revokeToken(RevokeTokenRequest request) {
    return calls.blocking(AdminServiceGrpc.getRevokeTokenMethod(), request);
  }

  /** Pins what a namespace learned, lets it learn again, or returns to what it learned before. */
  public SetPriorResponse setPrior(SetPriorRequest request) {
    return calls.blocking(AdminServiceGrpc.getSetPriorMethod(), request);
  }

  // --- listings --------------------------------------------------------------------------------

  /** Lists the estimators that can be asked, by name and version. */
  public Pages<Estimator, ListEstimatorsResponse> listEstimators(ListEstimatorsRequest request) {
    return pages(
        PredictionServiceGrpc.getListEstimatorsMethod(),
        request,
        ListEstimatorsResponse::getEstimatorsList);
  }

  /** Lists the devices that the catalog knows, with the names that they go by. */
  public Pages<Device, ListDevicesResponse> listDevices(ListDevicesRequest request) {
    return pages(
        PredictionServiceGrpc.getListDevicesMethod(), request, ListDevicesResponse::getDevicesList);
  }

  /** Lists plugins; the first page tells also which could not be loaded. */
  public Pages<Plugin, ListPluginsResponse> listPlugins(ListPluginsRequest request) {
    return pages(
        PredictionServiceGrpc.getListPluginsMethod(), request, ListPluginsResponse::getPluginsList);
  }

  /** Lists profiles by name, without their content. */
  public Pages<Profile, ListProfilesResponse> listProfiles(ListProfilesRequest request) {
    return pages(
        ProfileServiceGrpc.getListProfilesMethod(), request, ListProfilesResponse::getProfilesList);
  }

  /** Lists what namespaces store, in bytes and profiles, beside their quotas. */
  public Pages<NamespaceUsage, ListUsageResponse> listUsage(ListUsageRequest request) {
    return pages(
        ProfileServiceGrpc.getListUsageMethod(), request, ListUsageResponse::getNamespacesList);
  }

  /** Lists the policies that can be asked, with their parameters. */
  public Pages<Plugin, ListPoliciesResponse> listPolicies(ListPoliciesRequest request) {
    return pages(
        ScheduleServiceGrpc.getListPoliciesMethod(),
        request,
        ListPoliciesResponse::getPoliciesList);
  }

  /** Lists generations of plugins, the newest first. */
  public Pages<Generation, ListGenerationsResponse> listGenerations(
      ListGenerationsRequest request) {
    return pages(
        AdminServiceGrpc.getListGenerationsMethod(),
        request,
        ListGenerationsResponse::getGenerationsList);
  }

  /** Lists tokens, without their texts. */
  public Pages<Token, ListTokensResponse> listTokens(ListTokensRequest request) {
    return pages(
        AdminServiceGrpc.getListTokensMethod(), request, ListTokensResponse::getTokensList);
  }

  /** Lists what was learned of the store's jobs, namespace by namespace. */
  public Pages<LearnedPriors, ListPriorsResponse> listPriors(ListPriorsRequest request) {
    return pages(
        AdminServiceGrpc.getListPriorsMethod(), request, ListPriorsResponse::getLearnedList);
  }

  // --- long calls: onProgress, which may be null, hears how far it is, after a new beginning again

  /** Simulates what a policy would have done to jobs that arrive over time. */
  public LongAnswer<SimulateResponse, SimulationResult> simulate(
      SimulateRequest request, Consumer<SimulationProgress> onProgress) {
    return Calls.await(async.simulate(request, onProgress));
  }

  /** Finds the best configuration within constraints. */
  public LongAnswer<PlanResponse, PlanResult> plan(
      PlanRequest request, Consumer<PlanProgress> onProgress) {
    return Calls.await(async.plan(request, onProgress));
  }

  /** Predicts steps of a recorded job from its other steps, as they were or changed. */
  public LongAnswer<ReplayResponse, ReplayResult> replay(
      ReplayRequest request, Consumer<DiagnosisProgress> onProgress) {
    return Calls.await(async.replay(request, onProgress));
  }

  /** Finds what bounds a recorded job's steps, and what would shorten them most. */
  public LongAnswer<DiagnoseResponse, DiagnosisResult> diagnose(
      DiagnoseRequest request, Consumer<DiagnosisProgress> onProgress) {
    return Calls.await(async.diagnose(request, onProgress));
  }

  /** Scores estimators on a table's test rows. */
  public LongAnswer<BacktestResponse, BacktestResult> backtest(
      BacktestRequest request, Consumer<BacktestProgress> onProgress) {
    return Calls.await(async.backtest(request, onProgress));
  }

  @SuppressWarnings("unchecked") // pages are asked for by copies of the request
  private <Q extends Message, R extends Message, T> Pages<T, R> pages(
      MethodDescriptor<Q, R> method, Q request, Function<R, List<T>> items) {
    return new Pages<>(request, asked -> calls.blocking(method, (Q) asked), items);
  }
}
