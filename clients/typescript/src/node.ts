import { Client } from "./client.js";
import { GrpcTransport } from "./grpc_transport.js";
import type { ClientOptions } from "./options.js";

export * from "./index.js";
export { GrpcTransport };

/**
 * A client over gRPC.
 *
 * @param target `host:port`, or any name that gRPC resolves
 */
export function createClient(target: string, options: ClientOptions = {}): Client {
  return new Client(new GrpcTransport(target, options), options);
}
