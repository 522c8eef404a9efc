// The example of README.md.
import { createClient, nodeRange, phaseTimings, profileSource, rows } from "@nodewise/client";
import { SyncMode } from "@nodewise/client/v1";

using client = createClient(process.env.NODEWISE_SERVER ?? "127.0.0.1:50551");
const timed = { nodes: 1, workers: 1, deviceName: "V100", syncMode: SyncMode.ASYNC, batchPerWorkerSamples: 32 };
const phases = { downloadSeconds: 0.08, computeSeconds: 0.21, uploadSeconds: 0.08, updateSeconds: 0.004 }; // of a short run
const reply = await client.predict({
  profile: profileSource({ phaseTimings: phaseTimings([{ ...phases, configuration: timed }]) }),
  ranges: [nodeRange(1, 16)],
});
for (const row of rows(reply)) console.log(`${row.nodes} nodes: ${row.samplesPerSecond?.toFixed(0)} samples/s`);
console.log(`recommended: ${reply.recommendation?.nodes} nodes; ${reply.recommendation?.why}`);
