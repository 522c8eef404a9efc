import { NodewiseError } from "@nodewise/client";

/**
 * Asks the server for a text that the Python client or the command line writes, so that this page need not write it too.
 *
 * @param name of the conversion
 * @param question what JSON can express; it travels compressed in the address
 */
export async function convert<T>(name: string, question: object, signal: AbortSignal): Promise<T> {
  const stream = new Blob([JSON.stringify(question)]).stream().pipeThrough(new CompressionStream("deflate"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  const text = btoa(String.fromCharCode(...packed))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
  const response = await fetch(`console/${name}?q=${text}`, { signal }).catch((error: Error) => {
    if (signal.aborted) throw error;
    throw new NodewiseError("UNAVAILABLE", error.message);
  });
  const reply = await response.json().catch(() => ({ message: `The server answers ${response.status}.` }));
  if (!response.ok) throw new NodewiseError("INVALID_ARGUMENT", reply.message ?? "The server does not convert this.");
  return reply as T;
}
