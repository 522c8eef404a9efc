// The overhead of the client: `overhead.js KIND COUNT` repeats one action, while the benchmark measures the processor time.
// KIND: `unary_stub` and `unary_client` ask `$NODEWISE_SERVER` one Predict, by grpc-js and the generated messages alone and by the
// client, whose rows are read; `rows_decode` and `rows_read` decode the BatchPredict reply in the file `$NODEWISE_REPLY`, and read
// its rows as well.
import { readFileSync } from "node:fs";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { createClient, jobs, nodeRange, type Rows, rows } from "@nodewise/client";
import { BatchPredictResponseSchema, PredictRequestSchema, PredictResponseSchema } from "@nodewise/client/v1";

const target = process.env.NODEWISE_SERVER ?? "";
const request = create(PredictRequestSchema, {
  profile: { source: { case: "profileId", value: "a/b" } },
  ranges: [nodeRange(1, 16)],
});

/** What a scheduler reads of rows, through the row view. */
function total(read: Rows): number {
  let sum = 0;
  for (const row of read) {
    if (!row.answered) continue;
    sum += (row.stepSeconds ?? 0) + (row.samplesPerSecond ?? 0) + (row.lowerSamplesPerSecond ?? 0);
    sum += (row.upperSamplesPerSecond ?? 0) + (row.memoryBytes ?? 0) + (row.nodes ?? 0) + (row.workers ?? 0);
    sum += row.bottleneck?.length ?? 0;
  }
  return sum;
}

async function byStub(count: number): Promise<number> {
  const stub = new Client(target, credentials.createInsecure());
  const encode = (value: typeof request) => Buffer.from(toBinary(PredictRequestSchema, value));
  const decode = (bytes: Buffer) => fromBinary(PredictResponseSchema, bytes);
  let sum = 0;
  for (let call = 0; call < count; call++) {
    const reply = await new Promise<ReturnType<typeof decode>>((resolve, reject) => {
      stub.makeUnaryRequest("/nodewise.v1.PredictionService/Predict", encode, decode, request, (error, value) =>
        value ? resolve(value) : reject(error),
      );
    });
    for (const seconds of reply.predictions?.stepSeconds ?? []) sum += seconds;
  }
  stub.close();
  return sum;
}

async function byClient(count: number): Promise<number> {
  using client = createClient(target);
  let sum = 0;
  for (let call = 0; call < count; call++) sum += total(rows(await client.predict(request)));
  return sum;
}

function decoded(count: number, read: boolean): number {
  const bytes = readFileSync(process.env.NODEWISE_REPLY ?? "");
  let sum = 0;
  for (let time = 0; time < count; time++) {
    const reply = fromBinary(BatchPredictResponseSchema, bytes);
    if (read) for (const job of jobs(reply)) sum += total(job.rows);
    else sum += reply.outcomes.length;
  }
  return sum;
}

const [kind, times] = process.argv.slice(2);
const count = Number(times);
const found =
  kind === "unary_stub"
    ? await byStub(count)
    : kind === "unary_client"
      ? await byClient(count)
      : decoded(count, kind === "rows_read");
console.log(found);
