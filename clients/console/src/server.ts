import { type Client, createClient } from "@nodewise/client";
import type { Profile } from "@nodewise/client/v1";

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
    // People wait longer than schedulers, and answers may be larger than a gRPC message.
    client = createClient(location.origin, {
      ...(present ? { token: present } : {}),
      maxReceiveBytes: 256 * 2 ** 20,
      timeoutMs: 60_000,
    });
    tokenOfClient = present;
  }
  return client;
}

const AT_ONCE = 3;

/** Profiles by name, a few at a time so that other callers do not wait; undefined = it cannot be read. */
export async function profilesOf(
  names: readonly string[],
  { signal, pageSize }: { signal: AbortSignal; pageSize?: number },
): Promise<(Profile | undefined)[]> {
  const found: (Profile | undefined)[] = [];
  let next = 0;
  const read = async () => {
    for (let index = next++; index < names.length; index = next++) {
      const request = { profileId: names[index] as string, ...(pageSize === undefined ? {} : { pageSize }) };
      const reply = await server()
        .getProfile(request, { signal })
        .catch(() => undefined);
      found[index] = reply?.profile;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, read));
  return found;
}
