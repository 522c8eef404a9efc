// What a client does when servers fail, over both transports alike.
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { type Client, NodewiseError, nodeRange, profileSource } from "@nodewise/client";
import { CUT, type Fake, fakeConnect, fakeGrpc, Refusal, type Reply } from "./support/fakes.js";

const QUESTION = { profile: profileSource("a"), ranges: [nodeRange(1, 2)] };
const ANSWER = { basis: { estimator: "fake" } };

async function failure(call: Promise<unknown>): Promise<NodewiseError> {
  const error = await call.then(
    () => assert.fail("it did not fail"),
    (thrown) => thrown,
  );
  assert(error instanceof NodewiseError, String(error));
  return error;
}

for (const [transport, fake] of [
  ["gRPC", fakeGrpc],
  ["Connect", fakeConnect],
] as const) {
  describe(transport, () => {
    for (const code of ["UNAVAILABLE", "CANCELLED"] as const)
      test(`${code} is tried again`, async () => {
        await using server = await fake(function* (_, attempt) {
          if (attempt < 4) throw new Refusal(code);
          yield ANSWER;
        });
        assert.equal((await server.client().predict(QUESTION)).basis?.estimator, "fake");
        assert.equal(server.asked.length, 4);
      });

    test("four attempts, and no more", async () => {
      await using server = await fake(always("UNAVAILABLE"));
      assert.equal((await failure(server.client().predict(QUESTION))).code, "UNAVAILABLE");
      assert.equal(server.asked.length, 4);
    });

    test("not with retry off, and not what administers or is overloaded", async () => {
      await using server = await fake(always("UNAVAILABLE"));
      await failure(server.client({ retry: false }).predict(QUESTION));
      assert.equal(server.asked.length, 1);
      await using busy = await fake(always("RESOURCE_EXHAUSTED", { reason: "OVERLOADED", delayMs: 1500 }));
      const error = await failure(busy.client().predict(QUESTION));
      assert.deepEqual([error.code, error.reason, error.retryDelayMs], ["RESOURCE_EXHAUSTED", "OVERLOADED", 1500]);
      assert.equal(busy.asked.length, 1);
    });

    test("the server's pushback is kept, and a negative one ends it", async () => {
      let heardAt = 0;
      await using server = await fake(function* (_, attempt) {
        if (attempt > 1) {
          assert(performance.now() - heardAt > 250);
          yield ANSWER;
        }
        heardAt = performance.now();
        throw new Refusal("UNAVAILABLE", { pushbackMs: 300 });
      });
      await server.client().predict(QUESTION);
      await using final = await fake(always("UNAVAILABLE", { pushbackMs: -1 }));
      await failure(final.client().predict(QUESTION));
      assert.equal(final.asked.length, 1);
    });

    test("many failures end retries", async () => {
      await using server = await fake(always("UNAVAILABLE", { pushbackMs: 0 }));
      const client = server.client();
      for (let call = 0; call < 30; call++) await failure(client.predict(QUESTION));
      assert(server.asked.length < 90, `${server.asked.length} attempts`);
      assert(server.asked.length > 60, `${server.asked.length} attempts`);
    });

    test("an error tells all that the server told", async () => {
      const violations = [{ field: "ranges[0]", description: "must be something" }];
      await using server = await fake(
        always("INVALID_ARGUMENT", { reason: "INVALID_FIELD", metadata: { missingFields: "a,b" }, violations }),
      );
      const error = await failure(server.client().predict(QUESTION));
      assert.deepEqual([error.code, error.reason, error.retryDelayMs], ["INVALID_ARGUMENT", "INVALID_FIELD", undefined]);
      assert.deepEqual([error.violations, error.missingFields], [violations, ["a", "b"]]);
    });

    test("a deadline and a cancellation end the call here and at the server", async () => {
      await using server = await fake(async function* ({ gone }) {
        await once(gone, "abort");
        yield* [];
      });
      const late = await failure(server.client().predict(QUESTION, { timeoutMs: 100 }));
      assert.equal(late.code, "DEADLINE_EXCEEDED");
      const caller = new AbortController();
      const call = server.client().predict(QUESTION, { signal: caller.signal });
      await arrived(server, 2);
      caller.abort("enough");
      const ended = await failure(call);
      assert.deepEqual([ended.code, ended.cause], ["CANCELLED", "enough"]);
      for (const { gone } of server.asked) if (!gone.aborted) await once(gone, "abort");
      const before = await failure(server.client().predict(QUESTION, { signal: AbortSignal.abort() }));
      assert.equal(before.code, "CANCELLED");
      assert.equal(server.asked.length, 2);
    });

    test("a reply that is too large is told", async () => {
      await using server = await fake(function* () {
        yield { basis: { choice: "x".repeat(5_000_000) } };
      });
      assert.equal((await failure(server.client().predict(QUESTION))).code, "RESOURCE_EXHAUSTED");
      const { basis } = await server.client({ maxReceiveBytes: 8_000_000 }).predict(QUESTION);
      assert.equal(basis?.choice.length, 5_000_000);
    });

    test("a stream of progress is begun again after a cut, three times", async () => {
      const progress = { event: { case: "progress", value: { doneCount: 1n } } };
      await using server = await fake(function* (_, attempt) {
        yield progress;
        if (attempt < 3) throw CUT;
        yield { event: { case: "jobs", value: { jobIds: ["a"] } } };
        yield { event: { case: "result", value: { runs: [{ averageJctSeconds: 7 }] } } };
      });
      let heard = 0;
      const answer = await server.client().simulate({}, { onProgress: () => heard++ });
      assert.deepEqual([answer.result.runs[0]?.averageJctSeconds, heard, server.asked.length], [7, 3, 3]);
      assert.deepEqual(
        answer.pieces.map((piece) => piece.case),
        ["jobs"],
      );
      await using away = await fake(function* () {
        yield progress;
        throw CUT;
      });
      assert.equal((await failure(away.client().simulate({}))).code, "UNAVAILABLE");
      assert.equal(away.asked.length, 4);
      assert.equal((await failure(away.client({ retry: false }).simulate({}))).code, "UNAVAILABLE");
      assert.equal(away.asked.length, 5);
    });

    test("a stream before its first message is tried again as a call is", async () => {
      await using server = await fake(function* (_, attempt) {
        if (attempt < 4) throw new Refusal("UNAVAILABLE");
        yield { event: { case: "result", value: {} } };
      });
      await server.client().simulate({});
      assert.equal(server.asked.length, 4);
    });

    test("a watch goes on after a cut, until its reader ends it", async () => {
      await using server = await fake(async function* ({ gone }, attempt) {
        yield { profiles: [{ profileId: `p${attempt}` }], caughtUp: true };
        if (attempt < 3) throw CUT;
        await once(gone, "abort");
      });
      const told = [];
      for await (const event of server.client().watchProfiles()) {
        told.push(event.profiles[0]?.profileId);
        if (told.length === 3) break;
      }
      assert.deepEqual(told, ["p1", "p2", "p3"]);
      const last = server.asked[2]?.gone as AbortSignal;
      if (!last.aborted) await once(last, "abort");
    });

    test("a watch that is refused ends", async () => {
      await using server = await fake(always("PERMISSION_DENIED"));
      const watch = server.client().watchProfiles();
      assert.equal((await failure(watch.next())).code, "PERMISSION_DENIED");
    });

    test("a pager asks page after page, and again for a page that failed", async () => {
      await using server = await fake(function* ({ request }, attempt) {
        if (attempt === 2) throw new Refusal("UNAVAILABLE");
        const page = Number(request.pageToken || 0);
        yield { profiles: [{ profileId: `p${page}` }], nextPageToken: page < 2 ? String(page + 1) : "" };
      });
      const listed = server.client().listProfiles({ namePrefix: "p" });
      assert.deepEqual(
        (await listed.all()).map((profile) => profile.profileId),
        ["p0", "p1", "p2"],
      );
      assert(server.asked.every(({ request }) => request.namePrefix === "p"));
      assert.equal((await listed.page()).nextPageToken, "1");
    });

    test("who asks is told to the server", async () => {
      await using server = await fake(function* () {
        yield ANSWER;
      });
      await server.client({ token: "t", userAgent: "mine/1" }).predict(QUESTION);
      await server.client({ token: async () => "later" }).predict(QUESTION);
      const [first, second] = server.asked.map(({ headers }) => headers);
      assert.deepEqual([first?.authorization, second?.authorization], ["Bearer t", "Bearer later"]);
      assert.match(first?.["user-agent"] ?? "", /^mine\/1 nodewise-typescript\/\d/);
    });

    test("a request id is chosen once for all attempts", async () => {
      await using server = await fake(function* (_, attempt) {
        if (attempt < 3) throw new Refusal("UNAVAILABLE");
        yield {};
      });
      await server.client().appendProfile({ profileId: "a" });
      const ids = new Set(server.asked.map(({ request }) => request.requestId));
      assert.equal(ids.size, 1);
      assert.match([...ids][0], /^[0-9a-f]{32}$/);
    });

    test("a closed client says so", async () => {
      await using server = await fake(always("UNAVAILABLE"));
      const client: Client = server.client();
      client.close();
      assert.equal((await failure(client.predict(QUESTION))).message, "the client is closed");
    });
  });
}

test("a stream of questions numbers them, and tells what its caller's iterable threw", async () => {
  await using server = await fakeGrpc(function* ({ request }) {
    yield { questionId: request.questionId, answer: { case: "predict", value: ANSWER } };
  });
  const question = { question: { case: "predict" as const, value: QUESTION } };
  const told = [];
  for await (const reply of server.client().streamPredict([question, { ...question, questionId: "mine" }, question]))
    told.push(reply.questionId);
  assert.deepEqual(told, ["1", "mine", "3"]);

  async function* broken() {
    yield question;
    throw new RangeError("mine");
  }
  await assert.rejects(async () => {
    for await (const _ of server.client().streamPredict(broken()));
  }, RangeError);
});

test("browsers are told that they cannot stream questions", async () => {
  await using server = await fakeConnect(always("INTERNAL"));
  await assert.rejects(
    async () => {
      for await (const _ of server.client().streamPredict([]));
    },
    { code: "UNIMPLEMENTED" },
  );
});

function always(code: NodewiseError["code"], told: Refusal["told"] = {}) {
  // biome-ignore lint/correctness/useYield: it never answers.
  return function* (): Generator<Reply> {
    throw new Refusal(code, told);
  };
}

/** Waits until so many calls have arrived. */
async function arrived(server: Fake, count: number): Promise<void> {
  while (server.asked.length < count) await new Promise((resolve) => setImmediate(resolve));
}
