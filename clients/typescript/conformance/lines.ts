import { createInterface } from "node:readline";
import type { Answer, Line } from "./faces.js";

/** Answers lines of standard input on standard output, in order; ends when the input does. */
export async function answerLines(answer: (line: Line) => Promise<Answer>): Promise<void> {
  for await (const text of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    const line = JSON.parse(text) as Line;
    process.stdout.write(`${JSON.stringify({ id: line.id, ...(await answer(line)) })}\n`);
  }
}
