import type { Authenticator } from "../src/auth/authenticator.ts";
import { valuesOf } from "../src/config/option.ts";
import { LIMITS } from "../src/core/limits.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { OtlpDeps } from "../src/ingest/inputs/otlp/export-logs.ts";
import { logsOperations } from "../src/ingest/inputs/otlp/grpc.ts";
import { OTLP_OPTIONS } from "../src/ingest/inputs/otlp/options.ts";
import { guardedService, tokenCaller } from "../src/server/grpc/guarded-service.ts";
import { grpcService } from "./grpc.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";

/** As most servers of gRPC have it: what exporters send at a time is bounded by themselves. */
const CALLS_PER_CONNECTION = 100;

type OtlpPorts = OtlpDeps & { authenticator: Authenticator; isDraining: () => boolean };

/** OTLP logs over gRPC on a port of their own: of servers with the role `ingest`, where an address is set. */
export function otlpService(plan: Plan, parts: Parts, ports: OtlpPorts): Service | undefined {
  const { otlpAddr } = valuesOf(OTLP_OPTIONS, parts.config);
  const isServed = plan.roles.some((role) => role === "all_in_one" || role === "ingest");
  if (!isServed || otlpAddr === "off") return undefined;
  const { authenticator, isDraining } = ports;
  const callerOf = tokenCaller(authenticator, "write");
  return grpcService({
    parts,
    title: "OTLP",
    services: [guardedService(logsOperations(ports), { ...parts, callerOf, isDraining })],
    listen: otlpAddr,
    variable: "ENGINE_OTLP_ADDR",
    mayBeTaken: false,
    maxReceiveBytes: LIMITS.ingestBodyBytes,
    maxCallsPerConnection: CALLS_PER_CONNECTION,
  });
}
