// The example of README.md.
import { createClient, jobs, nodePool, nodeRange, phaseTimings, profileSource, rows } from "@nodewise/client";
import { SyncMode } from "@nodewise/client/v1";

using client = createClient(process.env.NODEWISE_SERVER ?? "127.0.0.1:50551");
const timed = { nodes: 1, workers: 1, deviceName: "V100", syncMode: SyncMode.ASYNC, batchPerWorkerSamples: 32 };
const phases = { downloadSeconds: 0.08, computeSeconds: 0.21, uploadSeconds: 0.08, updateSeconds: 0.004 }; // of a short run
const profile = profileSource({ phaseTimings: phaseTimings([{ ...phases, configuration: timed }]) }); // or profileSource("team-a/a1")
const ranges = [nodeRange(1, 16)];

// Predict: one job.
const reply = await client.predict({ profile, ranges });
for (const row of rows(reply)) console.log(`${row.nodes} nodes: ${row.samplesPerSecond?.toFixed(0)} samples/s`);
console.log(`recommended: ${reply.recommendation?.nodes} nodes; ${reply.recommendation?.why}`);

// BatchPredict: many jobs, each with an answer or an error of its own.
const batch = await client.batchPredict({ jobs: [{ profile }, { profile: profileSource("nobody") }], ranges });
for (const { job, recommendation, error } of jobs(batch)) {
  console.log(`job ${job}: ${error ? error.reason : `${recommendation?.nodes} nodes`}`);
}

// Schedule: all jobs of a cluster. Send the reply's policyState with the next request.
const shares = await client.schedule({
  cluster: { pools: [nodePool("rack", "V100", { nodes: 4, devicesPerNode: 4 })] },
  jobs: [{ jobId: "first", profile, remainingSamples: 1e6 }],
});
for (const { jobId, devicesCount, why } of shares.allocations) console.log(`${jobId}: ${devicesCount} devices, ${why}`);
