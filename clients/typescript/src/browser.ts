import { Client } from "./client.js";
import { ConnectTransport } from "./connect_transport.js";
import type { ClientOptions } from "./options.js";

export * from "./index.js";
export { ConnectTransport };

/**
 * A client over the Connect protocol, for browsers and wherever else there is fetch.
 *
 * @param target base URL of the server's HTTP listener, e.g. "https://nodewise.example"; a page of another origin needs to
 *   be allowed there
 */
export function createClient(target: string, options: ClientOptions = {}): Client {
  return new Client(new ConnectTransport(target, options), options);
}
