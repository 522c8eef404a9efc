// The conformance executable of the client in a browser, over Connect: clients/conformance/PROTOCOL.md.
import { openPage } from "./chromium.js";
import { answerLines } from "./lines.js";

await using page = await openPage();
await answerLines(async (line) => {
  // As text: the driver's own types of what travels do not end.
  const told = await page.page.evaluate(
    async (asked) => JSON.stringify(await window.answer(JSON.parse(asked))),
    JSON.stringify(line),
  );
  return JSON.parse(told);
});
