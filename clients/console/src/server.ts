import { type Client, createClient } from "@nodewise/client";

const TOKEN = "nodewise.token";

/** The caller's token; this tab alone keeps it. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (value: string) => (value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN)),
};

let client: Client | undefined;
let tokenOfClient = "";

/** The client of the server that sent this page. */
export function server(): Client {
  const present = token.get();
  if (!client || present !== tokenOfClient) {
    client?.close();
    // Answers may be larger than a gRPC message: a page limits neither.
    client = createClient(location.origin, { ...(present ? { token: present } : {}), maxReceiveBytes: 256 * 2 ** 20 });
    tokenOfClient = present;
  }
  return client;
}
