// The console in a real browser, on a real server with real jobs. NODEWISE_PICTURES=FOLDER keeps the pictures of the documentation.
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const PATIENCE_MS = 180_000;
const NODEWISE = process.env.NODEWISE_COMMAND ?? "nodewise";
const ALERTS = fileURLToPath(new URL("../../../../deploy/prometheus/alerts.yaml", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("../../../../examples", import.meta.url));
const PICTURES = process.env.NODEWISE_PICTURES;
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

let server: string;
let http: string;
let folder: string;
let browser: Browser;
const processes: ChildProcess[] = [];

async function serve(environment: Record<string, string>): Promise<[string, string]> {
  const child = spawn(NODEWISE, ["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"], {
    env: { ...process.env, NODEWISE_STORE: "memory:", ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  processes.push(child);
  const addresses: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    addresses.push(line.split(" ").at(-1) ?? "");
    if (addresses.length === 2) break;
  }
  assert.equal(addresses.length, 2, "the server did not start");
  return [addresses[0] as string, `http://${addresses[1]}`];
}

const DAY_S = 86_400;

/** A job of measured runs on successive days, which are near linear scaling as far as `knee` nodes. */
async function store(name: string, knee: number, more: object = {}, nodes = [1, 2, 4]): Promise<void> {
  const speed = (n: number) => 40 / (1 / n + 0.2 / knee);
  const content = {
    observations: {
      configurations: {
        nodes,
        workers: nodes.map((n) => n * 8),
        deviceNames: ["A100"],
        syncModes: ["SYNC_MODE_ALLREDUCE"],
        batchPerWorkerSamples: [256],
      },
      stepsPerSecond: nodes.map((n) => speed(n) / n),
      measuredAtUnixSeconds: nodes.map((n) => Math.floor(Date.now() / 1000) + (Math.log2(n) - 5) * DAY_S),
    },
  };
  const response = await fetch(`${http}/v1/profiles/${name}:append`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ requestId: `${name}~${nodes.join("-")}`, content, ...more }),
  });
  assert.equal(response.status, 200, await response.text());
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "nodewise-console-"));
  [server, http] = await serve({ NODEWISE_STORE: `sqlite:${join(folder, "store.db")}`, NODEWISE_ADMIN: "true" });
  const jobs: [string, number][] = [
    ["team-a/resnet50", 64],
    ["team-a/bert-large", 3],
    ["team-b/gpt", 12],
    ["team-c/vit", 20],
  ];
  await Promise.all(jobs.map(([name, knee]) => store(name, knee)));
  // The service scores what it predicted for this run.
  await store("team-c/vit", 16, {}, [8]);
  const run = promisify(execFile);
  const traces = ["rank0.json.gz", "rank1.json.gz"].map((file) => join(EXAMPLES, "traces", file));
  await run(NODEWISE, ["ingest", ...traces, "--profile", "team-b/traced", "--server", server]);
  const executablePath = process.env.NODEWISE_CHROMIUM ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
});

after(async () => {
  await browser?.close();
  for (const child of processes) {
    child.kill();
    if (child.exitCode === null) await once(child, "exit");
  }
  await rm(folder, { recursive: true, force: true });
});

// The client asks a busy server again, but the browser reports each refusal.
const BUSY = /status of (429|503)/;

interface Open {
  page: Page;
  complaints: string[];
}

/** Opens a place of the console, or a page by its path, and counts what the page complains of. */
async function open(place: string, options: Parameters<Browser["newContext"]>[0] = {}, base = http): Promise<Open> {
  const context: BrowserContext = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on(
    "console",
    (message) => message.type() === "error" && !BUSY.test(message.text()) && complaints.push(message.text()),
  );
  page.on(
    "request",
    (request) => !request.url().startsWith(base) && !request.url().startsWith("data:") && complaints.push(request.url()),
  );
  await page.goto(place.startsWith("/") ? `${base}${place}` : `${base}/#/${place}`);
  await settled(page);
  return { page, complaints };
}

/** Waits until nothing is loading any more. */
async function settled(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".loading, [aria-busy=true]"), undefined, { polling: 150 });
}

async function close({ page, complaints }: Open): Promise<void> {
  await page.context().close();
  assert.deepEqual(complaints, []);
}

const firstJob = (page: Page) => page.locator("tbody tr").first().locator("td").first();
/** The numbers of a column of the first table; rows without one are left out. */
async function percentages(page: Page, column: number): Promise<number[]> {
  const texts = await page.locator(`tbody tr td:nth-child(${column})`).allInnerTexts();
  return texts.map((text) => Number.parseFloat(text)).filter((each) => !Number.isNaN(each));
}
const nav = (page: Page, name: string) => page.getByRole("navigation").getByRole("link", { name }).click();

/** Places, each with what to press to see its pictures. */
const PLACES: [name: string, place: string, ...press: (string | RegExp)[]][] = [
  ["jobs", "jobs"],
  ["job", "jobs/team-a%2Fresnet50?samples=5e8&hours=1&price=30"],
  ["plan", "plan", "Find the best layouts"],
  ["diagnosis", "diagnosis?job=team-b%2Ftraced"],
  ["schedule", "cluster?devices=A100%3D8x8&prefix=team-a", "Schedule now"],
  ["simulation", "cluster?devices=A100%3D8x8&prefix=team-a&samples=1e8", "Simulate", /Compare errors/],
  ["accuracy", "accuracy", "Score the stored runs"],
  ["service", "service"],
  ["methods", "/docs"],
];

for (const [name, place, ...press] of PLACES)
  for (const [width, colorScheme] of [
    [1280, "light"],
    [420, "dark"],
  ] as const)
    test(`${name} shows real data, ${width} wide and ${colorScheme}, and axe finds nothing serious`, async () => {
      const opened = await open(place, { colorScheme, viewport: { width, height: 900 } });
      const { page } = opened;
      for (const each of press) {
        await page.getByRole("button", { name: each }).click();
        await settled(page);
      }
      assert.equal(await page.locator(".failure").count(), 0, await page.locator("main").innerText());
      await page.locator("main table, main figure").first().waitFor();
      assert.ok(
        (await page.evaluate(() => document.documentElement.scrollWidth)) <= width,
        "the page is wider than the window",
      );
      await page.evaluate(await readFile(AXE, "utf8")); // a script tag would be against the page's policy
      const found = await page.evaluate(async () => {
        // biome-ignore lint/suspicious/noExplicitAny: axe is a script of the page
        const { violations } = await (globalThis as any).axe.run();
        return violations
          .filter((each: { impact: string }) => ["serious", "critical"].includes(each.impact))
          .map(
            (each: { id: string; nodes: { html: string }[] }) =>
              `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3)}`,
          );
      });
      assert.deepEqual(found, []);
      if (PICTURES && width === 1280) await page.screenshot({ path: join(PICTURES, `console-${name}.png`), fullPage: true });
      await close(opened);
    });

// --- questions of a platform engineer, each in at most three clicks from the first page ---------------------------------

test("which jobs are on too many nodes?", async () => {
  const opened = await open("");
  await opened.page.getByRole("button", { name: "Too many" }).click();
  assert.equal(await firstJob(opened.page).innerText(), "team-a/bert-large");
  await close(opened);
});

test("what would 16 more devices buy whom?", async () => {
  const opened = await open("");
  await opened.page.getByRole("button", { name: "+16 devices" }).click();
  const gains = await percentages(opened.page, 5);
  assert.ok(gains.length >= 3);
  assert.deepEqual(
    gains,
    [...gains].sort((a, b) => b - a),
  );
  await close(opened);
});

test("of which job are we least sure?", async () => {
  const opened = await open("");
  await opened.page.getByRole("button", { name: "± of 90 %" }).click();
  const widths = await percentages(opened.page, 6);
  assert.ok(widths.length >= 3);
  assert.deepEqual(
    widths,
    [...widths].sort((a, b) => b - a),
  );
  await close(opened);
});

test("how many nodes is this job worth, and what binds it?", async () => {
  const opened = await open("");
  await opened.page.getByRole("link", { name: "team-a/resnet50" }).click();
  await settled(opened.page);
  assert.match(await opened.page.locator(".sentence").innerText(), /\d+ nodes/);
  assert.ok(await opened.page.getByText("What a step waits for").isVisible());
  await close(opened);
});

test("what should be measured next?", async () => {
  const opened = await open("");
  await opened.page.getByRole("link", { name: "team-b/gpt" }).click();
  await settled(opened.page);
  await opened.page.getByText(/Deciding now risks/).waitFor();
  await close(opened);
});

test("why is this one slow?", async () => {
  const opened = await open("");
  await opened.page.getByRole("link", { name: "team-b/traced" }).click();
  await opened.page.getByRole("link", { name: /Why is it slow/ }).click();
  await settled(opened.page);
  assert.match(await opened.page.locator("p.sentence").innerText(), /rank 1/i);
  await close(opened);
});

test("does my model fit, and on which layout?", async () => {
  const opened = await open("");
  await nav(opened.page, "Plan");
  await opened.page.getByRole("button", { name: "Find the best layouts" }).click();
  await settled(opened.page);
  assert.match(await opened.page.locator(".sentence").innerText(), /tokens\/s/);
  assert.match(await opened.page.locator(".card").innerText(), /fits: .* GiB/);
  await close(opened);
});

test("who should get what now?", async () => {
  const opened = await open("cluster?devices=A100%3D4x8&prefix=team-a");
  await opened.page.getByRole("button", { name: "Schedule now" }).click();
  await settled(opened.page);
  assert.match(await opened.page.locator(".sentence").innerText(), /\d jobs? of 2 run/);
  await close(opened);
});

test("which estimator is wrong?", async () => {
  const opened = await open("");
  await nav(opened.page, "Accuracy");
  await settled(opened.page);
  while (await opened.page.getByText("No prediction has been scored yet").isVisible()) {
    await opened.page.reload();
    await settled(opened.page);
  }
  assert.ok(await opened.page.getByText(/Bias: below 0/).isVisible());
  await opened.page.getByRole("button", { name: "Mean error" }).click();
  assert.ok((await opened.page.locator("tbody tr").count()) > 5);
  await close(opened);
});

test("is the service well?", async () => {
  const opened = await open("");
  await nav(opened.page, "Service");
  await settled(opened.page);
  assert.match(await opened.page.locator(".checks").innerText(), /store: ok/);
  await close(opened);
});

// --- the timeline ------------------------------------------------------------------------------------------------------

/** The pixels of the timeline's lanes as numbers in a text, without the axis above them. */
const lanesOf = (page: Page) =>
  page.locator("canvas.lanes").evaluate((canvas) => {
    const { width, height } = canvas as HTMLCanvasElement;
    const context = (canvas as HTMLCanvasElement).getContext("2d");
    const image = context?.getImageData(150, 22, width - 150, height - 22);
    return new Uint32Array(image?.data.buffer ?? []).join();
  });

/** Waits until the lanes look otherwise. */
async function changed(page: Page, before: string): Promise<void> {
  for (let frame = 0; frame < 600; frame++) {
    if ((await lanesOf(page)) !== before) return;
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  assert.fail("the lanes do not change");
}

/** Chooses colours of the page, and waits until the lanes have them. */
async function choose(page: Page, colours: string): Promise<void> {
  const before = await lanesOf(page);
  await page.getByLabel("Colours").selectOption(colours);
  await changed(page, before);
}

test("a timeline that was dragged looks as if it had been drawn there", async () => {
  const opened = await open("diagnosis?job=team-b%2Ftraced");
  const { page } = opened;
  const lanes = page.locator("canvas.lanes");
  await lanes.focus();
  await page.keyboard.press("+");
  const before = await lanesOf(page);
  await lanes.hover({ position: { x: 600, y: 60 } });
  await page.mouse.down();
  for (const by of [-7, -40, 13, -120, 55, -300]) {
    const box = await lanes.boundingBox();
    await page.mouse.move((box?.x ?? 0) + 600 + by, (box?.y ?? 0) + 60);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  await page.mouse.up();
  const dragged = await lanesOf(page);
  assert.notEqual(dragged, before);
  // Another colour and back draws everything again.
  for (const each of ["dark", "light"]) await choose(page, each);
  assert.equal(await lanesOf(page), dragged);
  await close(opened);
});

test("the timeline follows the colours of the page, and what is chosen stands out", async () => {
  const opened = await open("diagnosis?job=team-b%2Ftraced");
  const { page } = opened;
  const colours = async () => {
    const opaque = (await lanesOf(page)).split(",").filter((pixel) => Number(pixel) >= 0xff000000);
    return new Set(opaque.map((pixel) => [0, 8, 16].map((bits) => (Number(pixel) >>> bits) & 255).join()));
  };
  const all = await colours();
  await choose(page, "dark");
  const dark = await colours();
  assert.equal([...dark].filter((pixel) => all.has(pixel)).length, 0);
  const part = page.locator("figure svg rect[role=button]").first();
  const fill = await part.evaluate((rect) => getComputedStyle(rect).fill);
  const unchosen = await lanesOf(page);
  await part.click();
  await changed(page, unchosen);
  const left = await colours();
  const chosen = fill.match(/\d+/g)?.join() ?? "";
  assert.ok(left.has(chosen), `${fill} of the chosen part is drawn`);
  // Besides it, the grid alone is opaque.
  assert.ok(left.size <= 2, [...left].join(" "));
  await close(opened);
});

test("the timeline names the event that is pointed at", async () => {
  const opened = await open("diagnosis?job=team-b%2Ftraced");
  const { page } = opened;
  const lanes = page.locator("canvas.lanes");
  const reading = page.locator("canvas.lanes + .reading");
  const data = (await lanesOf(page)).split(",");
  const width = (await lanes.evaluate((canvas) => (canvas as HTMLCanvasElement).width)) - 150;
  // The first lane with a run of pixels of one colour: their middle lies within its event.
  const row = 5;
  const pixel = (x: number) => data[row * width + x];
  const x = [...Array(width - 10).keys()].find(
    (at) => pixel(at) !== "0" && Array.from({ length: 6 }, (_, next) => pixel(at + next)).every((p) => p === pixel(at)),
  );
  assert.ok(x !== undefined);
  await lanes.hover({ position: { x: 150 + x + 3, y: 22 + row } });
  assert.match(await reading.innerText(), /^rank 0, .+: .+, [\d.]+ .?s from [\d.]+ .?s$/);
  await lanes.hover({ position: { x: 20, y: 22 + row } });
  assert.equal((await reading.innerText()).trim(), "");
  await close(opened);
});

// --- further answers ---------------------------------------------------------------------------------------------------

test("stored runs are scored over time and by job, and the worst job comes first", async () => {
  const opened = await open("accuracy");
  const { page } = opened;
  await page.getByRole("button", { name: "Score the stored runs" }).click();
  await settled(page);
  assert.match(await page.locator("p.sentence").last().innerText(), /auto predicted \d+ runs of \d+ jobs .* it is worst on/);
  const jobs = page.getByRole("region", { name: "Jobs by the error of auto" }).locator("tbody tr");
  const errors = (await jobs.locator("td:nth-child(3)").allInnerTexts()).map(Number.parseFloat);
  assert.ok(errors.length >= 3);
  assert.deepEqual(
    errors,
    [...errors].sort((a, b) => b - a),
  );
  assert.equal(await page.locator("svg.lines").count(), 3);
  await page.getByRole("combobox", { name: "Estimator" }).selectOption("power-law");
  assert.match(await page.locator("p.sentence").last().innerText(), /^power-law predicted/);
  await close(opened);
});

test("without runs to score, and where scoring fails, the page says so", async () => {
  const opened = await open("accuracy?prefix=nobody");
  const { page } = opened;
  await page.getByRole("button", { name: "Score the stored runs" }).click();
  await page.getByText("No stored run can be scored").waitFor();
  await page.route("**/Backtest", (route) => route.abort());
  await page.getByLabel("Jobs whose names begin with").fill("team-b/gpt");
  await page.getByRole("button", { name: "Score the stored runs" }).click();
  await page.locator("li.warn", { hasText: "team-b/gpt: " }).waitFor();
  opened.complaints.length = 0; // the browser reports each request that failed
  await close(opened);
});

test("the support matrix has the measured devices first, and every other of the catalogue", async () => {
  const opened = await open("accuracy");
  const table = opened.page.getByRole("region", { name: "Devices by number format" });
  assert.match(await table.locator("tbody tr").first().innerText(), /\d %/);
  await table.getByRole("button", { name: /Show all/ }).click();
  assert.match(await table.getByRole("row", { name: /^K80 / }).innerText(), /^K80\s+extrapolated(\s+–){5}$/);
  assert.match(await table.getByRole("row", { name: /^H100 / }).innerText(), /[\d.]+ % dense \(\d+\)/);
  await close(opened);
});

test("every alert of deploy/ is on the page with its severity and its threshold", async () => {
  const opened = await open("service");
  const table = opened.page.getByRole("region", { name: /Conditions of alerts/ });
  const rules = (await readFile(ALERTS, "utf8")).split("- alert: ").slice(1);
  assert.equal(await table.locator("tbody tr").count(), rules.length);
  for (const rule of rules) {
    const name = /^\w+/.exec(rule)?.[0] ?? "";
    const text = await table.getByRole("row", { name }).innerText();
    assert.ok(text.includes(/severity: (\w+)/.exec(rule)?.[1] ?? "?"), text);
    const [, threshold] = /[<>] (\d[\d.]*)\s/.exec(rule) ?? [];
    if (threshold) assert.match(text, new RegExp(`[<>] ${threshold.replace(".", "\\.")}\\b`));
  }
  await close(opened);
});

test("an alert holds where the metrics say so", async () => {
  const opened = await open("service");
  const { page } = opened;
  const table = page.getByRole("region", { name: /Conditions of alerts/ });
  assert.match(await table.getByRole("row", { name: "NodewiseStoreDown" }).innerText(), /does not hold/);
  await page.route("**/metrics", async (route) => {
    const response = await route.fetch();
    const text = (await response.text())
      .replace(/^nodewise_store_up .*/m, "nodewise_store_up 0.0")
      .replace(/^(nodewise_queue_waiting_calls\{queue="ingest"\}) .*/m, "$1 1e6");
    await route.fulfill({ response, body: text });
  });
  await page.getByText(/2 conditions of 16 hold:/).waitFor();
  assert.match(await table.getByRole("row", { name: "NodewiseStoreDown" }).innerText(), /holds: the store does not answer/);
  assert.match(await table.getByRole("row", { name: "NodewiseQueueLong" }).innerText(), /1,?000,?000 wait in ingest/);
  await page.unroute("**/metrics");
  await page.getByText("None of the 16 conditions is known to hold").waitFor();
  await page.route("**/metrics", (route) => route.abort());
  await page.getByText(/1 condition of 16 holds: NodewiseServerDown/).waitFor();
  opened.complaints.length = 0; // the browser reports each request that failed
  await close(opened);
});

test("what would better predictions be worth?", async () => {
  const opened = await open("cluster?devices=A100%3D4x8&samples=1e8&policies=fifo&policy=marginal-gain");
  const { page } = opened;
  await page.getByRole("button", { name: "Simulate" }).click();
  await settled(page);
  assert.ok(await page.getByText("Share of jobs that complete within a time").isVisible());
  await page.getByRole("button", { name: /Compare errors under/ }).click();
  await settled(page);
  const sentence = page.locator("p.sentence", { hasText: "perfect predictions" });
  assert.match(await sentence.innerText(), /completes the jobs [\d.]+ % (sooner|later) than .* \(from .* to .*\)/);
  await close(opened);
});

test("a plan can be pasted into every framework that can train it", async () => {
  const opened = await open("plan?devices=h100%3D1x8&batch=64");
  const { page } = opened;
  await page.getByRole("button", { name: "Find the best layouts" }).click();
  await settled(page);
  const frameworks = page.getByLabel("Framework");
  const names = await frameworks
    .locator("option")
    .evaluateAll((all) => all.map((each) => (each as HTMLOptionElement).value));
  assert.deepEqual(names, ["megatron", "deepspeed", "torchtitan", "nemo", "accelerate"]);
  assert.match(await page.locator(".copied pre").first().innerText(), /torchrun[\s\S]*--tensor-model-parallel-size/);
  assert.ok(await page.getByText("Memory of the fullest device over a step").isVisible());
  assert.match(await page.locator("main").innerText(), /The peak of [\d.]+ GiB is in the/);
  for (const each of ["deepspeed", "torchtitan", "nemo", "accelerate"]) {
    await frameworks.selectOption(each);
    await page
      .locator(".copied pre, p.warn", { hasText: /torchrun|cannot express|accelerate launch/ })
      .first()
      .waitFor();
  }
  await close(opened);
});

test("families of models are read as the command line reads them, and what is missing is named", async () => {
  const opened = await open("plan");
  const { page } = opened;
  const config = {
    model_type: "gpt2",
    n_layer: 12,
    n_embd: 768,
    n_head: 12,
    n_positions: 1024,
    vocab_size: 50257,
  };
  const model = page.getByLabel(/Model: drop or paste/);
  await model.fill(JSON.stringify(config));
  await page.getByText("torch_dtype is missing").waitFor();
  assert.ok(await page.getByRole("button", { name: "Find the best layouts" }).isEnabled());
  const { n_head: _, ...headless } = config;
  await model.fill(JSON.stringify(headless));
  await page.getByText(/n_head.*is missing; must be a whole number/).waitFor();
  assert.ok(await page.getByRole("button", { name: "Find the best layouts" }).isDisabled());
  await model.fill("{");
  await page.getByText("The file is not valid JSON").waitFor();
  opened.complaints.length = 0; // the browser reports the reply 400
  await close(opened);
});

test("without jobs to simulate, and where the comparison fails, the page says so", async () => {
  const opened = await open("cluster?devices=A100%3D4x8&prefix=nobody&policies=fifo&policy=marginal-gain");
  const { page } = opened;
  await page.getByRole("button", { name: "Simulate" }).click();
  await page.getByText("No job matches that can be predicted").waitFor();
  await page.getByLabel("Jobs whose names begin with").fill("team-a");
  await page.route("**/ListEstimators", (route) => route.abort());
  await page.getByRole("button", { name: /Compare errors under/ }).click();
  await page.getByText("The server does not answer.").waitFor();
  await page.unroute("**/ListEstimators");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText(/than with perfect predictions/).waitFor();
  opened.complaints.length = 0; // the browser reports each request that failed
  await close(opened);
});

test("where a conversion fails, the page says so and tries again", async () => {
  const opened = await open("jobs");
  const { page } = opened;
  await page.route("**/console/*", (route) => route.abort());
  await nav(page, "Plan");
  await page.getByText("The server does not answer.").waitFor();
  const plan = page.getByRole("button", { name: "Find the best layouts" });
  assert.ok(await plan.isDisabled());
  await page.unroute("**/console/*");
  await page.getByRole("button", { name: "Try again" }).click();
  await plan.click();
  await settled(page);
  assert.equal(await page.locator(".failure").count(), 0);
  opened.complaints.length = 0; // the browser reports each request that failed
  await close(opened);
});

// --- states ----------------------------------------------------------------------------------------------------------

test("without a job that matches, the page says so", async () => {
  const opened = await open("jobs?prefix=nobody");
  assert.ok(await opened.page.getByText("No job matches").isVisible());
  await close(opened);
});

test("while an answer is on its way, the page says so, and keeps the answer before", async () => {
  const opened = await open("jobs/team-b%2Fgpt");
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await opened.page.route("**/Predict", async (route) => {
    await held;
    await route.continue();
  });
  await opened.page.getByLabel("Up to nodes").fill("12");
  await opened.page.locator(".stale svg").first().waitFor();
  release();
  await settled(opened.page);
  assert.match(opened.page.url(), /most=12/);
  await close(opened);
});

test("when the server is gone, the page says so and goes on when it is back", async () => {
  const opened = await open("jobs");
  await opened.page.route("**/ListProfiles", (route) => route.abort());
  await opened.page.getByLabel("Name begins with").fill("team");
  await opened.page.getByText("The server does not answer.").waitFor();
  await opened.page.unroute("**/ListProfiles");
  await opened.page.getByRole("button", { name: "Try again" }).click();
  await opened.page.getByRole("link", { name: "team-b/gpt" }).waitFor();
  opened.complaints.length = 0; // the browser reports each request that failed
  await close(opened);
});

test("a job that cannot be predicted says what is missing", async () => {
  const opened = await open("jobs/nobody");
  assert.match(await opened.page.locator("main").innerText(), /PROFILE_NOT_FOUND/);
  await opened.page.context().close();
});

test("markup in names is text", async () => {
  const markup = '<img src=x onerror="document.title=1">';
  await store("hostile", 5, { displayName: markup, labels: { markup } });
  const opened = await open("jobs/hostile");
  assert.ok((await opened.page.locator("main").innerText()).includes(markup));
  assert.equal(await opened.page.locator("main img").count(), 0);
  await close(opened);
});

test("a server with tokens asks for one, and this tab alone keeps it", async () => {
  const path = join(folder, "tokens.db");
  const run = promisify(execFile);
  const { stdout } = await run(NODEWISE, ["tokens", "create", "--role", "read", "--store", `sqlite:${path}`, "--json"]);
  const [, base] = await serve({ NODEWISE_STORE: `sqlite:${path}`, NODEWISE_AUTHENTICATION: '["tokens"]' });
  const { page } = await open("jobs", {}, base);
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("does not accept this token").waitFor();
  await page.getByLabel("Token").fill(JSON.parse(stdout).bearer_token);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("No job is stored yet").waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem("nodewise.token")), null);
  await page.context().close();
});

test("the page of methods has a call by curl of each", async () => {
  const opened = await open("/docs");
  const { paths } = await (await fetch(`${http}/openapi.json`)).json();
  const methods = Object.values(paths).flatMap((verbs) => Object.keys(verbs as object));
  const calls = await opened.page.locator("main details pre").allTextContents();
  assert.equal(calls.length, methods.length);
  assert.ok(calls.every((call) => call.startsWith("curl -sS ") && call.includes(http)));
  await close(opened);
});

test("the keyboard reads a curve and sorts a table", async () => {
  const opened = await open("jobs/team-b%2Fgpt");
  const { page } = opened;
  await page.locator("svg.curve").first().focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".reading").first().innerText(), /\d+ nodes: /);
  await close(opened);
});
