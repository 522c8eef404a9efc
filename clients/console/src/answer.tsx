import { NodewiseError } from "@nodewise/client";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { token } from "./server.js";

/** What became of a question. A value that is `stale` answers the question before, while the next answer is on its way. */
export type Answer<T> = { again: () => void } & (
  | { state: "loading" }
  | { state: "ready"; value: T; stale: boolean }
  | { state: "failed"; error: Error }
);

/**
 * Asks when the key changes.
 *
 * @param key everything that the question depends on; undefined = there is nothing to ask yet
 */
export function useAnswer<T>(key: string | undefined, ask: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [attempt, setAttempt] = useState(0);
  const again = () => setAttempt((before) => before + 1);
  const [answer, setAnswer] = useState<Answer<T>>({ state: "loading", again });
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === undefined) return;
    const controller = new AbortController();
    setAnswer((before) => (before.state === "ready" ? { ...before, stale: true } : { state: "loading", again }));
    latest.current(controller.signal).then(
      (value) => controller.signal.aborted || setAnswer({ state: "ready", value, stale: false, again }),
      (error: Error) => controller.signal.aborted || setAnswer({ state: "failed", error, again }),
    );
    return () => controller.abort(new DOMException("the page no longer needs the answer", "AbortError"));
  }, [key, attempt]);
  return answer;
}

/** A value that follows another after a pause, so that each key does not ask a question. */
export function useDelayed<T>(value: T, milliseconds = 250): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return delayed;
}

/** Shows an answer, or why there is none. `progress` says how far a long call is. */
export function AnswerView<T>({
  answer,
  progress,
  children,
}: {
  answer: Answer<T>;
  progress?: string | undefined;
  children: (value: T) => ComponentChildren;
}) {
  if (answer.state === "loading")
    return (
      <p class="loading" role="status">
        {progress ?? "Loading …"}
      </p>
    );
  if (answer.state === "failed") return <Failure error={answer.error} again={answer.again} />;
  return (
    <div class={answer.stale ? "stale" : ""} aria-busy={answer.stale}>
      {children(answer.value)}
    </div>
  );
}

/** An error with its reason, the fields that it names, and the way on. */
export function Failure({ error, again }: { error: Error; again?: () => void }) {
  const known = error instanceof NodewiseError ? error : undefined;
  if (known?.code === "UNAUTHENTICATED") return <TokenForm wrong={token.get() !== ""} again={again ?? (() => {})} />;
  const [, head = error.message, reasons = ""] = /^(.*?) \((.*;.*)\)$/s.exec(error.message) ?? [];
  const lines = [
    ...(known?.violations.map(({ field, description }) => `${field}: ${description}`) ?? []),
    ...(known?.missingFields.length ? [`It would help to state one of: ${known.missingFields.join(", ")}`] : []),
    ...reasons.split("; ").filter(Boolean),
  ].filter((line) => line !== head);
  return (
    <section class="failure" role="alert">
      <h2>{known?.reason || known?.code || "The page failed"}</h2>
      <p>{known?.code === "UNAVAILABLE" ? "The server does not answer." : head}</p>
      {lines.length > 0 && (
        <ul>
          {lines.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </section>
  );
}

function TokenForm({ wrong, again }: { wrong: boolean; again: () => void }) {
  const [text, setText] = useState("");
  const send = (event: Event) => {
    event.preventDefault();
    token.set(text.trim());
    again();
  };
  return (
    <form class="failure" onSubmit={send}>
      <h2>{wrong ? "The server does not accept this token" : "This server requires a token"}</h2>
      <label>
        Token
        <input type="password" autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="quiet">Only this tab keeps it, until it is closed.</p>
      <button type="submit" disabled={!text.trim()}>
        Continue
      </button>
    </form>
  );
}
