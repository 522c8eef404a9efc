import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { Calls, type LongAnswer, type LongCallOptions, newId } from "./calls.js";
import { NodewiseError } from "./errors.js";
import type { Plugin } from "./gen/nodewise/v1/plugin_pb.js";
import * as prediction from "./gen/nodewise/v1/prediction_service_pb.js";
import type { Profile } from "./gen/nodewise/v1/profile_pb.js";
import * as profiles from "./gen/nodewise/v1/profile_service_pb.js";
import * as scheduling from "./gen/nodewise/v1/schedule_service_pb.js";
import * as admin from "./gen/nodewise/v1beta1/admin_service_pb.js";
import * as completion from "./gen/nodewise/v1beta1/completion_service_pb.js";
import * as diagnosis from "./gen/nodewise/v1beta1/diagnosis_service_pb.js";
import * as evaluation from "./gen/nodewise/v1beta1/evaluation_service_pb.js";
import * as planning from "./gen/nodewise/v1beta1/plan_service_pb.js";
import * as sharing from "./gen/nodewise/v1beta1/sharing_service_pb.js";
import * as simulation from "./gen/nodewise/v1beta1/simulation_service_pb.js";
import { type IngestOptions, IngestWriter } from "./ingest.js";
import type { ClientOptions } from "./options.js";
import type { Pager } from "./pages.js";
import { Patience, type ResumePolicy } from "./resume.js";
import { sleep } from "./sleep.js";
import type { CallOptions, Transport } from "./transport.js";

type Init<Schema extends Parameters<typeof create>[0]> = MessageInitShape<Schema>;

// An acknowledgement that does not come within this time is asked for again.
const ACKNOWLEDGE_TIMEOUT_MS = 10_000;

/**
 * A connection to a Nodewise server: a method for each RPC, which takes the contract's request as a plain object and
 * returns its reply. Every method's last argument says how the call is made ({@link CallOptions}); every failure is a
 * {@link NodewiseError}. Nothing is sent before the first call.
 */
export class Client implements Disposable {
  readonly #calls: Calls;
  readonly #acknowledgeMs: number;

  /** Made by `createClient`; a transport of one's own may stand here. */
  constructor(
    transport: Transport,
    { retry = true, timeoutMs = ACKNOWLEDGE_TIMEOUT_MS }: Pick<ClientOptions, "retry" | "timeoutMs"> = {},
  ) {
    this.#calls = new Calls(transport, retry);
    this.#acknowledgeMs = timeoutMs;
  }

  /** Where the server is. */
  get target(): string {
    return this.#calls.target;
  }

  /** Ends every call and the connection. Ingest writers are to be closed before. */
  close(): void {
    this.#calls.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  // --- predictions ---------------------------------------------------------------------------------------------------

  /** Predicts one job, stored or given inline, on configurations that were never run, and recommends one. */
  predict(
    request: Init<typeof prediction.PredictRequestSchema>,
    options?: CallOptions,
  ): Promise<prediction.PredictResponse> {
    return this.#calls.unary(prediction.PredictionService.method.predict, request, options);
  }

  /** Predicts many jobs; {@link jobs} reads the reply. A job that cannot be answered carries its error. */
  batchPredict(
    request: Init<typeof prediction.BatchPredictRequestSchema>,
    options?: CallOptions,
  ): Promise<prediction.BatchPredictResponse> {
    return this.#calls.unary(prediction.PredictionService.method.batchPredict, request, options);
  }

  /**
   * Asks over one stream: questions are read as the server takes them, answers come as they are ready. What has no
   * `questionId` is numbered from 1. A problem of one question ends that question, not the stream. Not in browsers.
   */
  streamPredict(
    questions: Many<Init<typeof prediction.StreamPredictRequestSchema>>,
    options: CallOptions = {},
  ): AsyncIterable<prediction.StreamPredictResponse> {
    return this.#calls.transport.duplexStream(
      prediction.PredictionService.method.streamPredict,
      numbered(questions),
      options,
    );
  }

  /** Which of some configurations to measure next, best first, by what each would teach and by its cost. */
  suggestMeasurements(
    request: Init<typeof prediction.SuggestMeasurementsRequestSchema>,
    options?: CallOptions,
  ): Promise<prediction.SuggestMeasurementsResponse> {
    return this.#calls.unary(prediction.PredictionService.method.suggestMeasurements, request, options);
  }

  /** The estimators that can be asked. */
  listEstimators(
    request: Init<typeof prediction.ListEstimatorsRequestSchema> = {},
    options?: CallOptions,
  ): Pager<prediction.Estimator, prediction.ListEstimatorsResponse> {
    return this.#calls.listing(
      prediction.PredictionService.method.listEstimators,
      request,
      (page) => page.estimators,
      options,
    );
  }

  /** The devices that the server's catalog knows, with the names that they go by. */
  listDevices(
    request: Init<typeof prediction.ListDevicesRequestSchema> = {},
    options?: CallOptions,
  ): Pager<prediction.Device, prediction.ListDevicesResponse> {
    return this.#calls.listing(prediction.PredictionService.method.listDevices, request, (page) => page.devices, options);
  }

  /** The plugins that are loaded, of one kind or all; a page also has those that could not be. */
  listPlugins(
    request: Init<typeof prediction.ListPluginsRequestSchema> = {},
    options?: CallOptions,
  ): Pager<Plugin, prediction.ListPluginsResponse> {
    return this.#calls.listing(prediction.PredictionService.method.listPlugins, request, (page) => page.plugins, options);
  }

  // --- profiles ------------------------------------------------------------------------------------------------------

  /** Appends to a profile in one call and commits. The same `requestId` again changes nothing; absent, one is chosen. */
  appendProfile(
    request: Init<typeof profiles.AppendProfileRequestSchema>,
    options?: CallOptions,
  ): Promise<profiles.AppendProfileResponse> {
    return this.#calls.unary(profiles.ProfileService.method.appendProfile, withId(request), options);
  }

  /**
   * A writer that adds to a profile in numbered batches and outlives restarts of the server. It asks first how far its
   * session is: one of an earlier process goes on when its `sessionId` is given again.
   */
  ingest(profileId: string, options: IngestOptions = {}): Promise<IngestWriter> {
    const sessionId = options.sessionId ?? newId();
    const send = async (batch: profiles.ProfileBatch | undefined, signal: AbortSignal) => {
      const request = { profileId, sessionId, ...(batch ? { batch } : {}) };
      const reply = await this.ingestBatch(request, { timeoutMs: this.#acknowledgeMs, signal });
      return reply.state ?? create(profiles.IngestStateSchema);
    };
    return new IngestWriter(sessionId, send, options).open();
  }

  /** Adds one batch to a session, or asks how far it is; {@link ingest} does so for all that a program records. */
  ingestBatch(
    request: Init<typeof profiles.IngestBatchRequestSchema>,
    options?: CallOptions,
  ): Promise<profiles.IngestBatchResponse> {
    return this.#calls.unary(profiles.ProfileService.method.ingestBatch, request, options);
  }

  /** Reads a profile as it is or was. Of more observations than a page holds, `nextPageToken` asks for the others. */
  getProfile(
    request: Init<typeof profiles.GetProfileRequestSchema>,
    options?: CallOptions,
  ): Promise<profiles.GetProfileResponse> {
    return this.#calls.unary(profiles.ProfileService.method.getProfile, request, options);
  }

  /** The profiles by name, without their content. */
  listProfiles(
    request: Init<typeof profiles.ListProfilesRequestSchema> = {},
    options?: CallOptions,
  ): Pager<Profile, profiles.ListProfilesResponse> {
    return this.#calls.listing(profiles.ProfileService.method.listProfiles, request, (page) => page.profiles, options);
  }

  /**
   * Reports all profiles and then every change, for as long as it is read. If the connection is lost, the watch starts
   * again: it reports all profiles again, and `caughtUp` once more. `timeoutMs` covers the whole watch; absent = no limit.
   */
  async *watchProfiles(
    request: Init<typeof profiles.WatchProfilesRequestSchema> = {},
    options: CallOptions & { resume?: Partial<ResumePolicy> } = {},
  ): AsyncGenerator<profiles.WatchProfilesResponse> {
    const method = profiles.ProfileService.method.watchProfiles;
    const message = create(method.input, request);
    const end = options.timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + options.timeoutMs;
    const patience = new Patience(options.resume);
    for (;;) {
      let error: NodewiseError | undefined;
      const timeoutMs = Number.isFinite(end) ? Math.max(1, end - performance.now()) : undefined;
      try {
        for await (const event of this.#calls.transport.serverStream(method, message, { ...options, timeoutMs })) {
          patience.progress();
          yield event;
        }
      } catch (thrown) {
        if (!(thrown instanceof NodewiseError)) throw thrown;
        error = thrown;
      }
      const over = options.signal?.aborted || this.#calls.closed || performance.now() >= end;
      const pause = over || !this.#calls.retry ? undefined : patience.pauseAfter(error);
      if (pause === undefined) {
        if (error) throw error;
        if (over || !this.#calls.retry) return;
        throw new NodewiseError("UNAVAILABLE", "the server ended the watch repeatedly without a reply");
      }
      await sleep(pause, options.signal);
    }
  }

  /** Deletes a profile if its etag is this; "*" = whatever it is. Until its purge time it can return. */
  deleteProfile(
    request: Init<typeof profiles.DeleteProfileRequestSchema>,
    options?: CallOptions,
  ): Promise<profiles.DeleteProfileResponse> {
    return this.#calls.unary(profiles.ProfileService.method.deleteProfile, request, options);
  }

  /** Brings a deleted profile back as it was. */
  undeleteProfile(
    request: Init<typeof profiles.UndeleteProfileRequestSchema>,
    options?: CallOptions,
  ): Promise<profiles.UndeleteProfileResponse> {
    return this.#calls.unary(profiles.ProfileService.method.undeleteProfile, request, options);
  }

  /** Takes evidence out of a profile; it stays in the history. The same `requestId` again changes nothing. */
  retractEvidence(
    request: Init<typeof profiles.RetractEvidenceRequestSchema>,
    options?: CallOptions,
  ): Promise<profiles.RetractEvidenceResponse> {
    return this.#calls.unary(profiles.ProfileService.method.retractEvidence, withId(request), options);
  }

  /** What namespaces store in which the caller has profiles, beside their quotas. */
  listUsage(
    request: Init<typeof profiles.ListUsageRequestSchema> = {},
    options?: CallOptions,
  ): Pager<profiles.NamespaceUsage, profiles.ListUsageResponse> {
    return this.#calls.listing(profiles.ProfileService.method.listUsage, request, (page) => page.namespaces, options);
  }

  // --- schedules and simulations -------------------------------------------------------------------------------------

  /** Shares a cluster among jobs. Pure: give `policyState` of the last reply, and `now` to repeat a decision. */
  schedule(
    request: Init<typeof scheduling.ScheduleRequestSchema>,
    options?: CallOptions,
  ): Promise<scheduling.ScheduleResponse> {
    const asked = request.now ? request : { ...request, now: timestampNow() };
    return this.#calls.unary(scheduling.ScheduleService.method.schedule, asked as typeof request, options);
  }

  /** The policies that can be asked, with their parameters. */
  listPolicies(
    request: Init<typeof scheduling.ListPoliciesRequestSchema> = {},
    options?: CallOptions,
  ): Pager<Plugin, scheduling.ListPoliciesResponse> {
    return this.#calls.listing(scheduling.ScheduleService.method.listPolicies, request, (page) => page.policies, options);
  }

  /** Tells what a policy would have done to jobs that arrive over time. */
  simulate(
    request: Init<typeof simulation.SimulateRequestSchema>,
    options?: LongCallOptions<simulation.SimulateResponse>,
  ): Promise<LongAnswer<simulation.SimulateResponse>> {
    return this.#calls.long(simulation.SimulationService.method.simulate, request, options);
  }

  /** Time, cost and risk of a job on offers of machines that can be taken away, and the offer to take. */
  estimateCompletion(
    request: Init<typeof completion.EstimateCompletionRequestSchema>,
    options?: CallOptions,
  ): Promise<completion.EstimateCompletionResponse> {
    return this.#calls.unary(completion.CompletionService.method.estimateCompletion, request, options);
  }

  /** Tells of a run before its start whether it fits, and its time, cost, energy and emissions, with failures. */
  estimateRun(
    request: Init<typeof completion.EstimateRunRequestSchema>,
    options?: CallOptions,
  ): Promise<completion.EstimateRunResponse> {
    return this.#calls.unary(completion.CompletionService.method.estimateRun, request, options);
  }

  /** Sends times of steps of a job that runs; the reply says what its recorders are asked to record. */
  reportSteps(
    request: Init<typeof diagnosis.ReportStepsRequestSchema>,
    options?: CallOptions,
  ): Promise<diagnosis.ReportStepsResponse> {
    return this.#calls.unary(diagnosis.DiagnosisService.method.reportSteps, request, options);
  }

  /** What jobs keep of their solo speed on one device, set by set, and whether sharing is worth it. */
  predictSharing(
    request: Init<typeof sharing.PredictSharingRequestSchema>,
    options?: CallOptions,
  ): Promise<sharing.PredictSharingResponse> {
    return this.#calls.unary(sharing.SharingService.method.predictSharing, request, options);
  }

  // --- plans, traces, backtests --------------------------------------------------------------------------------------

  /** Finds the best configuration within constraints; progress has the best so far. */
  plan(
    request: Init<typeof planning.PlanRequestSchema>,
    options?: LongCallOptions<planning.PlanResponse>,
  ): Promise<LongAnswer<planning.PlanResponse>> {
    return this.#calls.long(planning.PlanService.method.plan, request, options);
  }

  /** Predicts steps of a recorded job from its other steps, as they were or changed. */
  replay(
    request: Init<typeof diagnosis.ReplayRequestSchema>,
    options?: LongCallOptions<diagnosis.ReplayResponse>,
  ): Promise<LongAnswer<diagnosis.ReplayResponse>> {
    return this.#calls.long(diagnosis.DiagnosisService.method.replay, request, options);
  }

  /** Finds what bounds the steps of a recorded job, which ranks the others wait for, and what would help most. */
  diagnose(
    request: Init<typeof diagnosis.DiagnoseRequestSchema>,
    options?: LongCallOptions<diagnosis.DiagnoseResponse>,
  ): Promise<LongAnswer<diagnosis.DiagnoseResponse>> {
    return this.#calls.long(diagnosis.DiagnosisService.method.diagnose, request, options);
  }

  /** Fits estimators to a table's train rows and scores them on its test rows. */
  backtest(
    request: Init<typeof evaluation.BacktestRequestSchema>,
    options?: LongCallOptions<evaluation.BacktestResponse>,
  ): Promise<LongAnswer<evaluation.BacktestResponse>> {
    return this.#calls.long(evaluation.EvaluationService.method.backtest, request, options);
  }

  // --- administration, where the server allows it --------------------------------------------------------------------

  /** Generations of plugins, the newest first; a page also has which jobs each serves. */
  listGenerations(
    request: Init<typeof admin.ListGenerationsRequestSchema> = {},
    options?: CallOptions,
  ): Pager<admin.Generation, admin.ListGenerationsResponse> {
    return this.#calls.listing(admin.AdminService.method.listGenerations, request, (page) => page.generations, options);
  }

  /** Lets another generation take over, once it was tried: the one that waits, is named, or is installed by now. */
  reload(request: Init<typeof admin.ReloadRequestSchema> = {}, options?: CallOptions): Promise<admin.ReloadResponse> {
    return this.#calls.unary(admin.AdminService.method.reload, request, options);
  }

  /** Lets a generation answer a share of the jobs, once it was tried. */
  setCanary(request: Init<typeof admin.SetCanaryRequestSchema>, options?: CallOptions): Promise<admin.SetCanaryResponse> {
    return this.#calls.unary(admin.AdminService.method.setCanary, request, options);
  }

  /** Lets the canary answer all jobs. */
  promote(request: Init<typeof admin.PromoteRequestSchema> = {}, options?: CallOptions): Promise<admin.PromoteResponse> {
    return this.#calls.unary(admin.AdminService.method.promote, request, options);
  }

  /** Ends the canary; without one, returns to the generation that was stable before. */
  rollback(request: Init<typeof admin.RollbackRequestSchema> = {}, options?: CallOptions): Promise<admin.RollbackResponse> {
    return this.#calls.unary(admin.AdminService.method.rollback, request, options);
  }

  /** How the plugins of every track fare in the process that answers. */
  listPluginStates(
    request: Init<typeof admin.ListPluginStatesRequestSchema> = {},
    options?: CallOptions,
  ): Promise<admin.ListPluginStatesResponse> {
    return this.#calls.unary(admin.AdminService.method.listPluginStates, request, options);
  }

  /** Makes a bearer token. Its text, `bearerToken`, is told here alone. */
  createToken(
    request: Init<typeof admin.CreateTokenRequestSchema>,
    options?: CallOptions,
  ): Promise<admin.CreateTokenResponse> {
    return this.#calls.unary(admin.AdminService.method.createToken, request, options);
  }

  /** Tokens, without their texts. */
  listTokens(
    request: Init<typeof admin.ListTokensRequestSchema> = {},
    options?: CallOptions,
  ): Pager<admin.Token, admin.ListTokensResponse> {
    return this.#calls.listing(admin.AdminService.method.listTokens, request, (page) => page.tokens, options);
  }

  /** Ends a token for good. */
  revokeToken(
    request: Init<typeof admin.RevokeTokenRequestSchema>,
    options?: CallOptions,
  ): Promise<admin.RevokeTokenResponse> {
    return this.#calls.unary(admin.AdminService.method.revokeToken, request, options);
  }

  /** What was learned from the store's jobs, namespace by namespace, and what it changed. */
  listPriors(
    request: Init<typeof admin.ListPriorsRequestSchema> = {},
    options?: CallOptions,
  ): Pager<admin.LearnedPriors, admin.ListPriorsResponse> {
    return this.#calls.listing(admin.AdminService.method.listPriors, request, (page) => page.learned, options);
  }

  /** Pins what a namespace learned, lets it learn again, or returns it to what it learned before. */
  setPrior(request: Init<typeof admin.SetPriorRequestSchema>, options?: CallOptions): Promise<admin.SetPriorResponse> {
    return this.#calls.unary(admin.AdminService.method.setPrior, request, options);
  }
}

/** The request with an id of its own, chosen once: every retry carries the same. */
function withId<Request extends { requestId?: string }>(request: Request): Request {
  return request.requestId ? request : { ...request, requestId: newId() };
}

type Many<T> = Iterable<T> | AsyncIterable<T>;

async function* numbered(
  questions: Many<Init<typeof prediction.StreamPredictRequestSchema>>,
): AsyncGenerator<prediction.StreamPredictRequest> {
  let number = 0;
  for await (const asked of questions) {
    number++;
    const question = create(prediction.StreamPredictRequestSchema, asked);
    question.questionId ||= String(number);
    yield question;
  }
}
