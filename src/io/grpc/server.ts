import { createServer, type Server as Listener, type Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsListener } from "node:tls";
import {
  ResponderBuilder,
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  ServerListenerBuilder,
  status as Status,
  type ConnectionInjector,
  type Metadata,
  type sendUnaryData,
  type ServerInterceptor,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { systemClock, type Clock } from "../../core/clock.ts";
import { MIN_TLS_VERSION, TLS_CIPHERS, type TlsPair } from "../http/tls.ts";
import { addressOf, bufferOf, headerOf, metadataOf, WatchedCall } from "./call.ts";
import { receiveTimeoutMs, type GrpcMethod, type GrpcServer, type GrpcService } from "./grpc.ts";
import { failureOf, sentMessage } from "./status.ts";

export type GrpcServerOptions = {
  services: readonly GrpcService[];
  /** Most bytes of a request's message. */
  maxReceiveBytes: number;
  /** Most calls of one connection at a time; others wait at the client. */
  maxCallsPerConnection: number;
  /** Connections beyond so many are closed when they are opened; as many as the system allows unless given. */
  maxConnections?: number;
  /** The server speaks TLS with it, and nothing else. */
  tls?: TlsPair;
  /** Told of what nobody else can be told: connections that could not be accepted. */
  reportFailure?: (error: unknown) => void;
  /** The system's unless given. */
  clock?: Clock;
};

const HANDSHAKE_TIMEOUT_MS = 10_000;
const PING_EVERY_MS = 60_000;
const PING_TIMEOUT_MS = 30_000;

/** A server of those services, on @grpc/grpc-js. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  return new GrpcJsServer(options);
}

/** What ends calls. */
type Ends = { clock: Clock; hangUp: (peer: string) => void };

/** Connections are accepted here and handed to the driver, so that both servers of a process speak TLS alike. */
class GrpcJsServer implements GrpcServer {
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #clock: Clock;
  readonly #sockets = new Set<Socket>();

  constructor(options: GrpcServerOptions) {
    this.#clock = options.clock ?? systemClock;
    const ends: Ends = { clock: this.#clock, hangUp: (peer) => this.#hangUp(peer) };
    this.#server = new Server({
      "grpc.max_receive_message_length": options.maxReceiveBytes,
      "grpc.max_concurrent_streams": options.maxCallsPerConnection,
      "grpc.enable_channelz": 0,
      "grpc.keepalive_time_ms": PING_EVERY_MS,
      "grpc.keepalive_timeout_ms": PING_TIMEOUT_MS,
      interceptors: [admission(options.services), promptMessage(receiveTimeoutMs(options.maxReceiveBytes), ends)],
    });
    for (const service of options.services) {
      this.#server.addService(definitionOf(service), implementationOf(service, ends));
    }
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = this.#listenerOf(options.tls, injector);
    this.#listener.on("error", (error) => {
      if (this.#listener.listening) options.reportFailure?.(error);
    });
    if (options.maxConnections !== undefined) this.#listener.maxConnections = options.maxConnections;
  }

  /** `peer` is the address and port that the driver has of a call. */
  #hangUp(peer: string): void {
    for (const socket of this.#sockets) if (`${socket.remoteAddress}:${socket.remotePort}` === peer) socket.destroy();
  }

  #listenerOf(tls: TlsPair | undefined, injector: ConnectionInjector): Listener {
    const accept = (socket: Socket): void => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      // The driver hears of it as of a connection that is closed.
      socket.on("error", () => {});
      injector.injectConnection(socket);
    };
    if (tls === undefined) return createServer({ noDelay: true }, accept);
    const secured = { cert: tls.cert, key: tls.key, minVersion: MIN_TLS_VERSION, ciphers: TLS_CIPHERS } as const;
    return createTlsServer(
      { ...secured, noDelay: true, ALPNProtocols: ["h2"], handshakeTimeout: HANDSHAKE_TIMEOUT_MS },
      accept,
    );
  }

  listen({ host, port }: { host: string; port: number }): Promise<{ host: string; port: number }> {
    return new Promise((resolve, reject) => {
      this.#listener.once("error", reject);
      this.#listener.listen({ host, port }, () => {
        this.#listener.off("error", reject);
        const address = this.#listener.address();
        resolve(address === null || typeof address === "string" ? { host, port } : { host, port: address.port });
      });
    });
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#listener.close();
    const timeUp = Promise.withResolvers<void>();
    const timer = this.#clock.after(timeoutMs, timeUp.resolve, { background: true });
    const answered = new Promise<void>((resolve) => {
      this.#server.tryShutdown(() => resolve());
    });
    await Promise.race([answered, timeUp.promise]);
    timer.cancel();
  }

  async close(): Promise<void> {
    this.#server.forceShutdown();
    if (!this.#listener.listening) {
      for (const socket of this.#sockets) socket.destroy();
      return;
    }
    await new Promise<void>((resolve) => {
      this.#listener.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  useTlsPair({ cert, key }: TlsPair): void {
    const listener = this.#listener as TlsListener;
    listener.setSecureContext({ cert, key, minVersion: MIN_TLS_VERSION, ciphers: TLS_CIPHERS });
  }
}

/** Asks whether a call is to be read before the driver reads any of its message. */
function admission(services: readonly GrpcService[]): ServerInterceptor {
  const guards = new Map(services.map(({ name, admit }) => [name, admit]));
  return ({ path }, call) => {
    const admit = guards.get(path.split("/")[1] ?? "");
    if (admit === undefined) return new ServerInterceptingCall(call);
    const decide = async (metadata: Metadata, goOn: (metadata: Metadata) => void): Promise<void> => {
      const header = (name: string): string | undefined => headerOf(metadata, name);
      try {
        await admit({ path, header, remoteAddress: addressOf(call.getPeer()) });
      } catch (error) {
        call.sendStatus(driverError(error));
        return;
      }
      goOn(metadata);
    };
    const listener = new ServerListenerBuilder().withOnReceiveMetadata((metadata, next) => void decide(metadata, next));
    const responder = new ResponderBuilder().withStart((next) => next(listener.build()));
    return new ServerInterceptingCall(call, responder.build());
  };
}

/** Hangs up on a client that has begun a call and does not send its message, and end it, in time. */
function promptMessage(timeoutMs: number, { clock, hangUp }: Ends): ServerInterceptor {
  return (_, call) => {
    const peer = call.getPeer();
    // A call that has ended has no peer any more.
    const isOpen = (): boolean => call.getPeer() === peer;
    const late = clock.after(timeoutMs, () => isOpen() && hangUp(peer), { background: true });
    const listener = new ServerListenerBuilder().withOnReceiveHalfClose((next) => {
      late.cancel();
      next();
    });
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener.build())).build());
  };
}

/** Messages are bytes. */
function same(bytes: Buffer): Buffer {
  return bytes;
}

function definitionOf({ name, methods }: GrpcService): ServiceDefinition {
  const entries = Object.entries(methods).map(([method, { streams }]) => {
    const definition = {
      path: `/${name}/${method}`,
      requestStream: false,
      responseStream: streams,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    };
    return [method, definition] as const;
  });
  return Object.fromEntries(entries);
}

function implementationOf({ methods }: GrpcService, ends: Ends): UntypedServiceImplementation {
  const entries = Object.entries(methods).map(([name, method]) => {
    const answer = method.streams
      ? (call: ServerWritableStream<Buffer, Buffer>) => void answerStream(call, method, ends)
      : (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) =>
          void answerOne(call, reply, method, ends);
    return [name, answer] as const;
  });
  return Object.fromEntries(entries);
}

async function answerOne(
  driverCall: ServerUnaryCall<Buffer, Buffer>,
  reply: sendUnaryData<Buffer>,
  { handle }: GrpcMethod,
  ends: Ends,
): Promise<void> {
  const call = new WatchedCall(driverCall, ends);
  try {
    const { metadata, messages } = await handle(call, driverCall.request);
    if (!(messages instanceof Uint8Array)) throw new Error(`${call.path} answers with one message`);
    driverCall.sendMetadata(metadataOf(metadata));
    reply(null, bufferOf(messages));
  } catch (error) {
    reply(driverError(error));
  } finally {
    call.done();
  }
}

async function answerStream(
  driverCall: ServerWritableStream<Buffer, Buffer>,
  { handle }: GrpcMethod,
  ends: Ends,
): Promise<void> {
  const call = new WatchedCall(driverCall, ends);
  try {
    const { metadata, messages } = await handle(call, driverCall.request);
    driverCall.sendMetadata(metadataOf(metadata));
    await sendAll(messages instanceof Uint8Array ? one(messages) : messages, call);
    driverCall.end();
  } catch (error) {
    driverCall.emit("error", driverError(error));
  } finally {
    call.done();
  }
}

async function* one(message: Uint8Array): AsyncGenerator<Uint8Array> {
  yield message;
}

/** While one message is on its way to the client, the next one is made. */
async function sendAll(messages: AsyncIterable<Uint8Array>, call: WatchedCall): Promise<void> {
  const iterator = messages[Symbol.asyncIterator]();
  let sending = Promise.resolve();
  try {
    for (;;) {
      const next = await iterator.next();
      await sending;
      if (next.done === true) return;
      call.signal.throwIfAborted();
      sending = call.send(next.value);
      // Its failure is for the next turn.
      sending.catch(() => {});
    }
  } finally {
    await iterator.return?.();
  }
}

/** In the form in which the driver takes errors. */
function driverError(error: unknown): Error & { code: Status; details: string; metadata: Metadata } {
  const { status, message, metadata, details } = failureOf(error);
  const trailers = metadataOf(metadata);
  if (details !== undefined) trailers.set("grpc-status-details-bin", bufferOf(details));
  const sent = { code: Status[status], details: sentMessage(message), metadata: trailers };
  return Object.assign(new Error(message), sent);
}
