import { formatAddress, type Address } from "../src/config/kinds.ts";
import { messageOf } from "../src/core/errors.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { GrpcServer, GrpcService } from "../src/io/grpc/grpc.ts";
import { createGrpcServer } from "../src/io/grpc/server.ts";
import { connectionLimit } from "../src/io/http/connection-limit.ts";
import { TlsWatch } from "../src/io/http/tls-watch.ts";
import { bindServer, isTaken } from "./bind.ts";
import type { Parts } from "./parts.ts";
import { tlsPairOf } from "./tls.ts";

export type GrpcListenOptions = {
  parts: Parts;
  /** What it serves, for the log: `Arrow Flight`. */
  title: string;
  services: readonly GrpcService[];
  listen: Address;
  /** The variable that says where it listens. */
  variable: string;
  /** The process goes on without the server where somebody else listens there. */
  mayBeTaken: boolean;
  /** Most bytes of a request's message. */
  maxReceiveBytes: number;
  /** Most calls of one connection at a time. */
  maxCallsPerConnection: number;
  /** Is told where it listens. */
  onListening?: (address: Address) => void;
};

/** A gRPC server as a service; it has the certificate of the HTTP server, where that has one. */
export function grpcService(options: GrpcListenOptions): Service {
  const { parts, title, services, maxReceiveBytes, maxCallsPerConnection } = options;
  const { config, clock, log } = parts;
  const tls = tlsPairOf(parts);
  const maxConnections = connectionLimit("grpc");
  const server = createGrpcServer({
    services,
    maxReceiveBytes,
    maxCallsPerConnection,
    clock,
    reportFailure: (error) => log.error({ err: error, protocol: title }, "a connection could not be accepted"),
    ...(tls === undefined ? {} : { tls }),
    ...(maxConnections === undefined ? {} : { maxConnections }),
  });
  let tlsWatch: TlsWatch | undefined;
  return {
    name: title,
    run: async () => {
      const address = await listenOrGoOn(server, options);
      if (address === undefined) return;
      log.info({ address: formatAddress(address), protocol: title, tls: tls !== undefined }, "listening for gRPC");
      if (tls !== undefined) tlsWatch = new TlsWatch({ clock, log, pair: tls, use: (pair) => server.useTlsPair(pair) });
      options.onListening?.(address);
    },
    drain: () => server.drain(config.drainTimeoutSecs * 1000),
    stop: async () => {
      await tlsWatch?.stop();
      await server.close();
    },
  };
}

/** Undefined where somebody else listens there and the process goes on without it. */
async function listenOrGoOn(
  server: GrpcServer,
  { parts, title, listen, variable, mayBeTaken }: GrpcListenOptions,
): Promise<Address | undefined> {
  try {
    return await bindServer(server, listen, `by ${variable}, or set it to off`);
  } catch (error) {
    if (!mayBeTaken || !isTaken(error)) throw error;
    parts.log.warn({ address: formatAddress(listen), reason: messageOf(error) }, `${title} is not served`);
    return undefined;
  }
}
