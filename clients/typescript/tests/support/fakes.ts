// Servers that answer as a test says, and lie, cut and count as it says: one over gRPC, one over Connect.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { type Client, type ClientOptions, type Code, createClient } from "@nodewise/client";
import { createClient as createWebClient } from "@nodewise/client/browser";
import { PredictionService, ProfileService } from "@nodewise/client/v1";
import { SimulationService } from "@nodewise/client/v1beta1";
import { CODES } from "../../src/errors.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { type Status, StatusSchema } from "../../src/gen/google/rpc/status_pb.js";

/** What arrived at a fake. */
export interface Asked {
  /** Name of the method, e.g. "Predict". */
  method: string;
  // biome-ignore lint/suspicious/noExplicitAny: whichever message the method takes.
  request: any;
  headers: Record<string, string>;
  /** Aborted when the caller has gone. */
  gone: AbortSignal;
}

/** A message as a plain object. */
export type Reply = Record<string, unknown>;

/** How a fake answers: messages as plain objects, then its end, or a Refusal or CUT thrown. */
export type Behaviour = (asked: Asked, attempt: number) => AsyncGenerator<Reply> | Generator<Reply>;

/** The end of a stream without a status: the connection is closed. */
export const CUT = new Error("cut");

/** A status with details. */
export class Refusal extends Error {
  constructor(
    readonly code: Code,
    readonly told: {
      reason?: string;
      metadata?: Record<string, string>;
      violations?: { field: string; description: string }[];
      delayMs?: number;
      pushbackMs?: number;
    } = {},
  ) {
    super(`refused with ${code}`);
  }

  status(): Status {
    const { reason, metadata = {}, violations, delayMs } = this.told;
    const details = [];
    if (reason) details.push(anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, metadata, domain: "nodewise" })));
    if (violations) details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations: violations })));
    if (delayMs !== undefined)
      details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay: durationFromMs(delayMs) })));
    return create(StatusSchema, { code: CODES.indexOf(this.code), message: this.message, details });
  }
}

/** A fake that runs, with all that arrived there, and clients of it. */
export interface Fake extends AsyncDisposable {
  asked: Asked[];
  client(options?: ClientOptions): Client;
}

const METHODS = [PredictionService, ProfileService, SimulationService].flatMap((service) => service.methods as DescMethod[]);

/** A fake over gRPC. */
export async function fakeGrpc(behave: Behaviour): Promise<Fake> {
  const asked: Asked[] = [];
  const clients: Client[] = [];
  const server = new Server();
  for (const service of [PredictionService, ProfileService, SimulationService]) {
    const methods = service.methods as DescMethod[];
    server.addService(
      Object.fromEntries(
        methods.map((method) => [
          method.name,
          {
            path: `/${service.typeName}/${method.name}`,
            requestStream: method.methodKind === "bidi_streaming",
            responseStream: method.methodKind !== "unary",
            requestSerialize: (message: MessageShape<DescMessage>) => Buffer.from(toBinary(method.input, message)),
            requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
            responseSerialize: (message: MessageShape<DescMessage>) => Buffer.from(toBinary(method.output, message)),
            responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
          },
        ]),
      ),
      Object.fromEntries(methods.map((method) => [method.name, handler(method) as unknown as UntypedHandleCall])),
    );
  }

  function handler(method: DescMethod) {
    return async (
      call: ServerUnaryCall<unknown, unknown> & ServerDuplexStream<unknown, unknown>,
      done: (error: object | null, reply?: object) => void,
    ): Promise<void> => {
      const gone = new AbortController();
      call.on("cancelled", () => gone.abort());
      const headers = call.metadata.getMap() as Record<string, string>;
      const one: Asked = { method: method.name, request: call.request, headers, gone: gone.signal };
      asked.push(one);
      const attempt = asked.length;
      try {
        if (method.methodKind === "bidi_streaming") {
          // Else the call would be destroyed before its status is sent.
          for await (const request of call.iterator({ destroyOnReturn: false }))
            for await (const reply of behave({ ...one, request }, attempt)) call.write(create(method.output, reply));
          call.end();
          return;
        }
        for await (const reply of behave(one, attempt)) {
          const message = create(method.output, reply);
          if (method.methodKind === "unary") return done(null, message);
          call.write(message);
        }
        call.end();
      } catch (thrown) {
        const metadata = new Metadata();
        const refusal = thrown === CUT ? new Refusal("UNAVAILABLE") : (thrown as Refusal);
        const { pushbackMs } = refusal.told;
        if (refusal.told.reason)
          metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, refusal.status())));
        if (pushbackMs !== undefined) metadata.set("grpc-retry-pushback-ms", String(pushbackMs));
        const status = { code: CODES.indexOf(refusal.code), details: refusal.message, metadata };
        if (method.methodKind === "unary") done(status);
        else call.emit("error", status);
      }
    };
  }

  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return {
    asked,
    client(options) {
      const client = createClient(`127.0.0.1:${port}`, options);
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      server.forceShutdown();
    },
  };
}

/** A fake over the Connect protocol. */
export async function fakeConnect(behave: Behaviour): Promise<Fake> {
  const asked: Asked[] = [];
  const clients: Client[] = [];
  const server = createServer(async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const method = METHODS.find((each) => request.url === `/${each.parent.typeName}/${each.name}`) as DescMethod;
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const unary = method.methodKind === "unary";
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const one: Asked = {
      method: method.name,
      request: fromBinary(method.input, unary ? body : body.subarray(5)),
      headers: request.headers as Record<string, string>,
      gone: gone.signal,
    };
    asked.push(one);
    try {
      for await (const reply of behave(one, asked.length)) {
        const bytes = toBinary(method.output, create(method.output, reply));
        if (unary) return response.writeHead(200, { "content-type": "application/proto" }).end(bytes);
        if (!response.headersSent) response.writeHead(200, { "content-type": "application/connect+proto" });
        // What a cut comes after has left.
        await new Promise((sent) => response.write(enveloped(0, bytes), sent));
      }
      return response.end(enveloped(2, Buffer.from("{}")));
    } catch (thrown) {
      if (thrown === CUT) return response.destroy();
      const refusal = thrown as Refusal;
      const { code, message, details } = refusal.status();
      const error = {
        code: CODES[code]?.toLowerCase().replace("cancelled", "canceled"),
        message,
        details: details.map(({ typeUrl, value }) => ({
          type: typeUrl.split("/").at(-1),
          value: Buffer.from(value).toString("base64").replace(/=+$/, ""),
        })),
      };
      const { pushbackMs } = refusal.told;
      if (unary) {
        if (pushbackMs !== undefined) response.setHeader("trailer-grpc-retry-pushback-ms", pushbackMs);
        return response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify(error));
      }
      if (!response.headersSent) response.writeHead(200, { "content-type": "application/connect+proto" });
      const metadata = pushbackMs === undefined ? {} : { "grpc-retry-pushback-ms": [String(pushbackMs)] };
      return response.end(enveloped(2, Buffer.from(JSON.stringify({ error, metadata }))));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    asked,
    client(options) {
      const client = createWebClient(`http://127.0.0.1:${port}`, options);
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

function enveloped(flags: number, bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}
