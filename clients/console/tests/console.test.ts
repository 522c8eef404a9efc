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
const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));
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

/** A job of three measured runs, which are near linear scaling as far as `knee` nodes. */
async function store(name: string, knee: number, more: object = {}): Promise<void> {
  const nodes = [1, 2, 4];
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
    },
  };
  const response = await fetch(`${http}/v1/profiles/${name}:append`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ requestId: name, content, ...more }),
  });
  assert.equal(response.status, 200, await response.text());
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "nodewise-console-"));
  [server, http] = await serve({ NODEWISE_STORE: `sqlite:${join(folder, "store.db")}`, NODEWISE_ADMIN: "true" });
  await Promise.all([store("team-a/resnet50", 64), store("team-a/bert-large", 3), store("team-b/gpt", 12)]);
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
const PLACES: [name: string, place: string, press?: string][] = [
  ["jobs", "jobs"],
  ["job", "jobs/team-a%2Fresnet50?samples=5e8&hours=1&price=30"],
  ["plan", "plan", "Find the best layouts"],
  ["diagnosis", "diagnosis?job=team-b%2Ftraced"],
  ["schedule", "cluster?devices=A100%3D8x8&prefix=team-a", "Schedule now"],
  ["simulation", "cluster?devices=A100%3D8x8&prefix=team-a&samples=1e8", "Simulate"],
  ["accuracy", "accuracy"],
  ["service", "service"],
  ["methods", "/docs"],
];

for (const [name, place, press] of PLACES)
  for (const [width, colorScheme] of [
    [1280, "light"],
    [420, "dark"],
  ] as const)
    test(`${name} shows real data, ${width} wide and ${colorScheme}, and axe finds nothing serious`, async () => {
      const opened = await open(place, { colorScheme, viewport: { width, height: 900 } });
      const { page } = opened;
      if (press) await page.getByRole("button", { name: press }).click();
      await settled(page);
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
