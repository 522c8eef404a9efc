// The README shows what is run as an example.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

test("the README's example is the one that runs", async () => {
  const [readme, example] = await Promise.all(
    ["README.md", "examples/readme.ts"].map((name) => readFile(new URL(`../../${name}`, import.meta.url), "utf8")),
  );
  assert(readme?.includes(`\`\`\`ts\n${example?.slice(example.indexOf("\n") + 1)}\`\`\``));
});
