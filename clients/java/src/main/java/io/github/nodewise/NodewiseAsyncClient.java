package io.github.nodewise;

import io.github.nodewise.v1.AppendProfileRequest;
import io.github.nodewise.v1.AppendProfileResponse;
import io.github.nodewise.v1.BatchPredictRequest;
import io.github.nodewise.v1.BatchPredictResponse;
import io.github.nodewise.v1.DeleteProfileRequest;
import io.github.nodewise.v1.DeleteProfileResponse;
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
import io.github.nodewise.v1.PredictRequest;
import io.github.nodewise.v1.PredictResponse;
import io.github.nodewise.v1.PredictionServiceGrpc;
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
import io.github.nodewise.v1beta1.EvaluationServiceGrpc;
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
import io.github.nodewise.v1beta1.PlanServiceGrpc;
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
import io.github.nodewise.v1beta1.SimulationServiceGrpc;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * The calls of a {@link NodewiseClient} as futures. What a future returned here ends with is a
 * reply or a {@link NodewiseException}; cancelling it ends the call. Dependents and callbacks run
 * on gRPC's threads: they should not block.
 */
public final class NodewiseAsyncClient {
  private static final Calls.Shape<SimulateResponse, SimulationProgress, SimulationResult>
      SIMULATE =
          new Calls.Shape<>(
              SimulateResponse::hasProgress,
              SimulateResponse::getProgress,
              SimulateResponse::hasResult,
              SimulateResponse::getResult);
  private static final Calls.Shape<PlanResponse, PlanProgress, PlanResult> PLAN =
      new Calls.Shape<>(
          PlanResponse::hasProgress,
          PlanResponse::getProgress,
          PlanResponse::hasResult,
          PlanResponse::getResult);
  private static final Calls.Shape<ReplayResponse, DiagnosisProgress, ReplayResult> REPLAY =
      new Calls.Shape<>(
          ReplayResponse::hasProgress,
          ReplayResponse::getProgress,
          ReplayResponse::hasResult,
          ReplayResponse::getResult);
  private static final Calls.Shape<DiagnoseResponse, DiagnosisProgress, DiagnosisResult> DIAGNOSE =
      new Calls.Shape<>(
          DiagnoseResponse::hasProgress,
          DiagnoseResponse::getProgress,
          DiagnoseResponse::hasResult,
          DiagnoseResponse::getResult);
  private static final Calls.Shape<BacktestResponse, BacktestProgress, BacktestResult> BACKTEST =
      new Calls.Shape<>(
          BacktestResponse::hasProgress,
          BacktestResponse::getProgress,
          BacktestResponse::hasResult,
          BacktestResponse::getResult);

  private final Calls calls;

  NodewiseAsyncClient(Calls calls) {
    this.calls = calls;
  }

  // --- streams ---------------------------------------------------------------------------------

  /**
   * Asks over one stream: requests are read, in a thread of their own, as the server takes them.
   *
   * @param requests the questions; replies carry their question_id
   * @param onReply hears each answer; while it runs, the server is held up
   * @return done when all are answered
   */
  public CompletableFuture<Void> streamPredict(
      Iterable<StreamPredictRequest> requests, Consumer<StreamPredictResponse> onReply) {
    return calls.exchange(PredictionServiceGrpc.getStreamPredictMethod(), requests, onReply);
  }

  /**
   * Watches profiles; see {@link NodewiseClient#watchProfiles}.
   *
   * @param request which profiles
   * @param policy how long a server that went away is waited for
   * @param onReply hears what is told
   * @return ends when it is cancelled, or with the error that ended the watch
   */
  public CompletableFuture<Void> watchProfiles(
      WatchProfilesRequest request, ResumePolicy policy, Consumer<WatchProfilesResponse> onReply) {
    return calls.watch(
        ProfileServiceGrpc.getWatchProfilesMethod(), request, policy, onReply, Runnable::run);
  }

  // --- predictions -----------------------------------------------------------------------------

  /** Predicts one job on many configurations; read the rows by {@link PredictionRows}. */
  public CompletableFuture<PredictResponse> predict(PredictRequest request) {
    return calls.future(PredictionServiceGrpc.getPredictMethod(), request);
  }

  /** Predicts many jobs; read them by {@link JobRows}. A job that cannot be answered tells why. */
  public CompletableFuture<BatchPredictResponse> batchPredict(BatchPredictRequest request) {
    return calls.future(PredictionServiceGrpc.getBatchPredictMethod(), request);
  }

  /** Suggests what to measure next, best first, with the cost in node-seconds. */
  public CompletableFuture<SuggestMeasurementsResponse> suggestMeasurements(
      SuggestMeasurementsRequest request) {
    return calls.future(PredictionServiceGrpc.getSuggestMeasurementsMethod(), request);
  }

  // --- profiles --------------------------------------------------------------------------------

  /** Appends and commits. An empty request_id is filled in: no retry doubles anything. */
  public CompletableFuture<AppendProfileResponse> appendProfile(AppendProfileRequest request) {
    return calls.future(ProfileServiceGrpc.getAppendProfileMethod(), Requests.withId(request));
  }

  /** Adds one numbered batch to a session, or asks how far it is. */
  public CompletableFuture<IngestBatchResponse> ingestBatch(IngestBatchRequest request) {
    return calls.future(ProfileServiceGrpc.getIngestBatchMethod(), request);
  }

  /** Takes evidence out; it stays in the history. An empty request_id is filled in. */
  public CompletableFuture<RetractEvidenceResponse> retractEvidence(
      RetractEvidenceRequest request) {
    return calls.future(ProfileServiceGrpc.getRetractEvidenceMethod(), Requests.withId(request));
  }

  /** Reads one profile; of its observations one page, up to 20,000. */
  public CompletableFuture<GetProfileResponse> getProfile(GetProfileRequest request) {
    return calls.future(ProfileServiceGrpc.getGetProfileMethod(), request);
  }

  /** Deletes a profile of this etag ("*" = any); until its purge time it can return. */
  public CompletableFuture<DeleteProfileResponse> deleteProfile(DeleteProfileRequest request) {
    return calls.future(ProfileServiceGrpc.getDeleteProfileMethod(), request);
  }

  /** Brings a deleted profile back as it was. */
  public CompletableFuture<UndeleteProfileResponse> undeleteProfile(
      UndeleteProfileRequest request) {
    return calls.future(ProfileServiceGrpc.getUndeleteProfileMethod(), request);
  }

  // --- schedules -------------------------------------------------------------------------------

  /** Shares a cluster among jobs; pure. An absent now is the time of the call. */
  public CompletableFuture<ScheduleResponse> schedule(ScheduleRequest request) {
    return calls.future(ScheduleServiceGrpc.getScheduleMethod(), Requests.withNow(request));
  }

  // --- completion and sharing ------------------------------------------------------------------

  /** Estimates time, cost and risk on offers of machines that can be taken away. */
  public CompletableFuture<EstimateCompletionResponse> estimateCompletion(
      EstimateCompletionRequest request) {
    return calls.future(CompletionServiceGrpc.getEstimateCompletionMethod(), request);
  }

  /** Estimates a run before its start: memory, time, cost, energy and emissions, with failures. */
  public CompletableFuture<EstimateRunResponse> estimateRun(EstimateRunRequest request) {
    return calls.future(CompletionServiceGrpc.getEstimateRunMethod(), request);
  }

  /** Sends times of steps of a job that runs; the reply says what recorders are asked to record. */
  public CompletableFuture<ReportStepsResponse> reportSteps(ReportStepsRequest request) {
    return calls.future(DiagnosisServiceGrpc.getReportStepsMethod(), request);
  }

  /** Predicts what jobs keep of their solo speed on one device, set by set. */
  public CompletableFuture<PredictSharingResponse> predictSharing(PredictSharingRequest request) {
    return calls.future(SharingServiceGrpc.getPredictSharingMethod(), request);
  }

  // --- administration --------------------------------------------------------------------------

  /** Lets another generation of plugins take over, once it was tried. */
  public CompletableFuture<ReloadResponse> reload(ReloadRequest request) {
    return calls.future(AdminServiceGrpc.getReloadMethod(), request);
  }

  /** Lets a generation answer a share of the jobs, once it was tried. */
  public CompletableFuture<SetCanaryResponse> setCanary(SetCanaryRequest request) {
    return calls.future(AdminServiceGrpc.getSetCanaryMethod(), request);
  }

  /** Lets the canary answer all jobs. */
  public CompletableFuture<PromoteResponse> promote(PromoteRequest request) {
    return calls.future(AdminServiceGrpc.getPromoteMethod(), request);
  }

  /** Ends the canary; without one, returns to the stable generation before. */
  public CompletableFuture<RollbackResponse> rollback(RollbackRequest request) {
    return calls.future(AdminServiceGrpc.getRollbackMethod(), request);
  }

  /** Tells how the plugins of every track fare in the process that answers. */
  public CompletableFuture<ListPluginStatesResponse> listPluginStates(
      ListPluginStatesRequest request) {
    return calls.future(AdminServiceGrpc.getListPluginStatesMethod(), request);
  }

  /** Makes a bearer token; its text is told here alone. */
  public CompletableFuture<CreateTokenResponse> createToken(CreateTokenRequest request) {
    return calls.future(AdminServiceGrpc.getCreateTokenMethod(), request);
  }

  /** Ends a token for good. */
  public CompletableFuture<RevokeTokenResponse> revokeToken(RevokeTokenRequest request) {
    return calls.future(AdminServiceGrpc.getRevokeTokenMethod(), request);
  }

  /** Pins what a namespace learned, lets it learn again, or returns to what it learned before. */
  public CompletableFuture<SetPriorResponse> setPrior(SetPriorRequest request) {
    return calls.future(AdminServiceGrpc.getSetPriorMethod(), request);
  }

  // --- listings, a page each -------------------------------------------------------------------

  /** Lists the estimators that can be asked, by name and version. */
  public CompletableFuture<ListEstimatorsResponse> listEstimators(ListEstimatorsRequest request) {
    return calls.future(PredictionServiceGrpc.getListEstimatorsMethod(), request);
  }

  /** Lists the devices that the catalog knows, with the names that they go by. */
  public CompletableFuture<ListDevicesResponse> listDevices(ListDevicesRequest request) {
    return calls.future(PredictionServiceGrpc.getListDevicesMethod(), request);
  }

  /** Lists plugins; the first page tells also which could not be loaded. */
  public CompletableFuture<ListPluginsResponse> listPlugins(ListPluginsRequest request) {
    return calls.future(PredictionServiceGrpc.getListPluginsMethod(), request);
  }

  /** Lists profiles by name, without their content. */
  public CompletableFuture<ListProfilesResponse> listProfiles(ListProfilesRequest request) {
    return calls.future(ProfileServiceGrpc.getListProfilesMethod(), request);
  }

  /** Lists what namespaces store, in bytes and profiles, beside their quotas. */
  public CompletableFuture<ListUsageResponse> listUsage(ListUsageRequest request) {
    return calls.future(ProfileServiceGrpc.getListUsageMethod(), request);
  }

  /** Lists the policies that can be asked, with their parameters. */
  public CompletableFuture<ListPoliciesResponse> listPolicies(ListPoliciesRequest request) {
    return calls.future(ScheduleServiceGrpc.getListPoliciesMethod(), request);
  }

  /** Lists generations of plugins, the newest first. */
  public CompletableFuture<ListGenerationsResponse> listGenerations(
      ListGenerationsRequest request) {
    return calls.future(AdminServiceGrpc.getListGenerationsMethod(), request);
  }

  /** Lists tokens, without their texts. */
  public CompletableFuture<ListTokensResponse> listTokens(ListTokensRequest request) {
    return calls.future(AdminServiceGrpc.getListTokensMethod(), request);
  }

  /** Lists what was learned of the store's jobs, namespace by namespace. */
  public CompletableFuture<ListPriorsResponse> listPriors(ListPriorsRequest request) {
    return calls.future(AdminServiceGrpc.getListPriorsMethod(), request);
  }

  // --- long calls: onProgress, which may be null, hears how far it is, after a new beginning again

  /** Simulates what a policy would have done to jobs that arrive over time. */
  public CompletableFuture<LongAnswer<SimulateResponse, SimulationResult>> simulate(
      SimulateRequest request, Consumer<SimulationProgress> onProgress) {
    return calls.longCall(SimulationServiceGrpc.getSimulateMethod(), request, SIMULATE, onProgress);
  }

  /** Finds the best configuration within constraints. */
  public CompletableFuture<LongAnswer<PlanResponse, PlanResult>> plan(
      PlanRequest request, Consumer<PlanProgress> onProgress) {
    return calls.longCall(PlanServiceGrpc.getPlanMethod(), request, PLAN, onProgress);
  }

  /** Predicts steps of a recorded job from its other steps, as they were or changed. */
  public CompletableFuture<LongAnswer<ReplayResponse, ReplayResult>> replay(
      ReplayRequest request, Consumer<DiagnosisProgress> onProgress) {
    return calls.longCall(DiagnosisServiceGrpc.getReplayMethod(), request, REPLAY, onProgress);
  }

  /** Finds what bounds a recorded job's steps, and what would shorten them most. */
  public CompletableFuture<LongAnswer<DiagnoseResponse, DiagnosisResult>> diagnose(
      DiagnoseRequest request, Consumer<DiagnosisProgress> onProgress) {
    return calls.longCall(DiagnosisServiceGrpc.getDiagnoseMethod(), request, DIAGNOSE, onProgress);
  }

  /** Scores estimators on a table's test rows. */
  public CompletableFuture<LongAnswer<BacktestResponse, BacktestResult>> backtest(
      BacktestRequest request, Consumer<BacktestProgress> onProgress) {
    return calls.longCall(EvaluationServiceGrpc.getBacktestMethod(), request, BACKTEST, onProgress);
  }
}
