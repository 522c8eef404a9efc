import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Browser, chromium, type Page } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const QUIET = ["--disable-component-update", "--disable-sync"];

/** A page of a browser that is installed, and all that it needs. */
export interface OpenPage extends AsyncDisposable {
  page: Page;
  /** Where the page comes from, as its browser tells it to other servers. */
  origin: string;
}

/** The script of the page, as a bundler makes it of the package for browsers. */
export async function bundled(entry = "page.js"): Promise<string> {
  const bundle = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
    logLevel: "error",
  });
  return bundle.outputFiles[0]?.text ?? "";
}

/** Opens the page in Chromium: NODEWISE_CHROMIUM, else Debian's. Its origin is http://localhost on a port of its own. */
export async function openPage(port = 0): Promise<OpenPage> {
  const script = await bundled();
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : '<!doctype html><title>nodewise</title><script type="module" src="/page.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`;
  let browser: Browser | undefined;
  const close = async () => {
    await browser?.close();
    server.close();
    server.closeAllConnections();
  };
  try {
    const executablePath = process.env.NODEWISE_CHROMIUM ?? "/usr/bin/chromium";
    browser = await chromium.launch({ executablePath, args: [...FLAGS, ...QUIET] });
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.error(error));
    await page.goto(origin);
    await page.waitForFunction(() => "answer" in window);
    return { page, origin, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
