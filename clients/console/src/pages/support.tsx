import type { Device } from "@nodewise/client/v1";
import measured from "../../../../research/accuracy/support.json";
import { AnswerView, useAnswer } from "../answer.js";
import { percent } from "../format.js";
import { server } from "../server.js";
import { SortableTable } from "../table.js";

const FORMATS = ["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"] as const;

/** Results of published tables for one device, format, kind of model and kind of training. */
interface Result {
  model: string;
  training: string;
  rows: number;
  median: number;
}

const same = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");

/** Results by device and format, as the accuracy runs of this release saved them. */
const RESULTS = new Map<string, Result[]>();
for (const [key, { rows, median }] of Object.entries(measured)) {
  const [device = "", format = "", model = "", training = ""] = key.split(" | ");
  const place = `${same(device)} ${format}`;
  RESULTS.set(place, [...(RESULTS.get(place) ?? []), { model, training, rows, median }]);
}

function resultsOf(device: Device, format: string): Result[] {
  const names = new Set([device.name, ...device.aliases].map(same));
  return [...names].flatMap((name) => RESULTS.get(`${name} ${format}`) ?? []);
}

function errorOf(results: readonly Result[]): number | undefined {
  const rows = results.reduce((sum, each) => sum + each.rows, 0);
  return rows ? results.reduce((sum, each) => sum + each.rows * each.median, 0) / rows : undefined;
}

function grade(error: number | undefined): string {
  return error === undefined ? "" : error < 0.1 ? "strong" : error < 0.2 ? "middling" : "weak";
}

/** Which devices and formats transformers were measured on, and how well they were predicted without a run. */
export function Support() {
  const answer = useAnswer("devices", (signal) => server().listDevices({}, { signal }).all());
  return (
    <>
      <h2>What is supported</h2>
      <p class="quiet">
        Transformers of published measurements that were predicted from their facts alone: the median error of the step time,
        by kind. “Extrapolated” is answered from the catalogue without a measurement; a dash has no peak there.
      </p>
      <AnswerView answer={answer}>
        {(devices) => (
          <SortableTable
            caption="Devices by number format"
            parameter="support"
            most={15}
            rows={[...devices].sort((a, b) => measuredFormats(b) - measuredFormats(a))}
            keyOf={({ name }) => name}
            columns={[
              { name: "device", title: "Device", value: ({ name }) => name },
              ...FORMATS.map((format) => ({
                name: format,
                title: format,
                value: (device: Device) => errorOf(resultsOf(device, format)),
                className: (device: Device) => grade(errorOf(resultsOf(device, format))),
                show: (device: Device) => cell(device, format),
              })),
            ]}
          />
        )}
      </AnswerView>
    </>
  );
}

const measuredFormats = (device: Device) => FORMATS.filter((format) => resultsOf(device, format).length).length;

function cell(device: Device, format: string) {
  const results = resultsOf(device, format);
  if (results.length)
    return results.map(({ model, training, rows, median }) => (
      <span class="block" key={model + training}>
        {percent(median)} {model}
        {training === "all weights" ? "" : `, ${training}`} ({rows})
      </span>
    ));
  const known = device.facts.some(({ name, value }) => name === `${format}_flops_per_s` && value > 0);
  return known ? <span class="quiet">extrapolated</span> : "–";
}
