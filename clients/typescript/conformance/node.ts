// The conformance executable of the client on Node, over gRPC: clients/conformance/PROTOCOL.md.
import { readFileSync } from "node:fs";
import { type Client, type ClientOptions, createClient } from "@nodewise/client";
import { type Line, perform } from "./faces.js";
import { answerLines } from "./lines.js";

const clients = new Map<string, Client>();

function clientFor({ target, options = {} }: Line): Client {
  const key = JSON.stringify([target, options]);
  const read = (path: string | undefined) => (path === undefined ? undefined : readFileSync(path));
  const client = clients.get(key) ?? createClient(target, optionsOf(options, read));
  clients.set(key, client);
  return client;
}

function optionsOf(
  asked: NonNullable<Line["options"]>,
  read: (path: string | undefined) => Uint8Array | undefined,
): ClientOptions {
  const { tls } = asked;
  return {
    retry: asked.retry,
    token: asked.token,
    userAgent: asked.user_agent,
    maxReceiveBytes: asked.max_receive_bytes,
    tls: tls && { ca: read(tls.ca), certificate: read(tls.certificate), key: read(tls.key) },
  };
}

await answerLines((line) => perform(clientFor(line), line));
for (const client of clients.values()) client.close();
