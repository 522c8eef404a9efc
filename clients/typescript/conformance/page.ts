// The page's side of the conformance: the client as a browser has it, asked by the script that drives the page.
import { type Client, createClient } from "@nodewise/client";
import { type Answer, type Line, perform } from "./faces.js";

const clients = new Map<string, Client>();

function clientFor({ target, options = {} }: Line): Client {
  const key = JSON.stringify([target, options]);
  const { retry, token, user_agent: userAgent, max_receive_bytes: maxReceiveBytes, tls } = options;
  const client =
    clients.get(key) ?? createClient(`${tls ? "https" : "http"}://${target}`, { retry, token, userAgent, maxReceiveBytes });
  clients.set(key, client);
  return client;
}

declare global {
  interface Window {
    answer(line: Line): Promise<Answer>;
  }
}

window.answer = (line) => perform(clientFor(line), line);
